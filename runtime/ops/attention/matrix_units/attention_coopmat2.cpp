// The kernels of attention that reduce and compute inside the matrices
// (shaders/attention/matrix_units/attention_coopmat2.comp): held by a workgroup, with tensor addressing; and
// by a subgroup, for drivers that lack these.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/cost.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"
#include "runtime/ops/products/matrix_units/matrix_units.h"

namespace vitrine {
namespace {

constexpr uint64_t widest = 256;

// `threads` 0: one subgroup. Of workgroups, larger blocks are left out: on an H100 none was faster than
// 64x32.
struct Arrangement {
  uint32_t threads, block_q, block_k;
};
constexpr std::array<Arrangement, 4> workgroup_arrangements{{
    {128, 64, 32},
    {256, 64, 32},
    {128, 32, 32},
    {128, 16, 32},
}};
constexpr std::array<Arrangement, 4> subgroup_arrangements{{
    {0, 32, 32},
    {0, 16, 32},
    {0, 16, 16},
    {0, 8, 16},
}};

// What an invocation holds of scores, sums of values, their factors, maxima and totals.
double floats_of(const AttentionCoopmat2Shape& shape, const AttentionSizes& sizes) {
  return std::floor(shape.block_q * (4.0 * shape.block_k + 2.0 * shape.value_columns(sizes)) / shape.threads);
}

bool fits(const AttentionCoopmat2Shape& shape, const AttentionSizes& sizes, const Capabilities& device) {
  if (shape.threads > device.max_workgroup_invocations || shape.threads > device.max_workgroup_size[0] ||
      std::max({shape.block_q, shape.block_k, shape.key_depth(sizes), shape.value_columns(sizes)}) >
          device.flexible_max_dimension) {
    return false;
  }
  if (device.type == DeviceType::cpu) {
    // It runs matrices for correctness only, and compiles every element of a block on its own: that of a
    // wider head would take minutes.
    if (shape.block_q * shape.block_k > 128 || std::max(sizes.key_width, sizes.value_width) > 128)
      return false;
  } else if (floats_of(shape, sizes) > register_budget(device)) {
    return false;
  }
  if (!shape.staged) return true;
  return shape.shared_bytes(sizes) <= shared_budget(device, 1);
}

std::vector<AttentionCoopmat2Shape> shapes_of(std::span<const Arrangement> arrangements, bool staged,
                                              const AttentionSizes& sizes, const Capabilities& device) {
  std::vector<AttentionCoopmat2Shape> shapes;
  if (staged && matrix_subgroup_sizes(device).empty()) return shapes;
  for (const Arrangement& a : arrangements) {
    for (const FlexibleShape& grain : half_grains(device, a.threads)) {
      AttentionCoopmat2Shape shape{.staged = staged,
                                   .threads = staged ? matrix_subgroup_sizes(device).front() : a.threads,
                                   .block_q = a.block_q,
                                   .block_k = a.block_k,
                                   // Each is a length of one product and a width of the other one.
                                   .key_grain = std::max(grain.k, 8u),
                                   .value_grain = std::max(grain.n, 8u)};
      const bool divides = a.block_q % grain.m == 0 && a.block_k % grain.n == 0 && a.block_k % grain.k == 0 &&
                           shape.key_grain % grain.k == 0 && shape.value_grain % grain.n == 0;
      if (!divides || !fits(shape, sizes, device)) continue;
      shapes.push_back(shape);
      break;
    }
  }
  return shapes;
}

std::optional<std::string> refuse_as(const LowerContext& context, const std::string& variant,
                                     std::span<const Arrangement> arrangements, bool staged) {
  if (context.input(attention_input::q).dtype != DType::f16) return "matrix units multiply f16, q is f32";
  if (auto reason = refuse_drops(context)) return reason;
  if (auto reason = refuse_causal(context)) return reason;
  if (auto reason = refuse_relative_bias(context)) return reason;
  if (auto reason = refuse(context, "attention_coopmat2", variant)) return reason;
  const AttentionSizes sizes = attention_sizes(context);
  if (std::max(sizes.key_width, sizes.value_width) > widest) {
    return "heads are " + std::to_string(std::max(sizes.key_width, sizes.value_width)) + " wide, at most " +
           std::to_string(widest) + " is possible";
  }
  if (shapes_of(arrangements, staged, sizes, context.device()).empty()) {
    return "no block fits the flexible matrices that the device lists";
  }
  return std::nullopt;
}

// How the driver holds matrices is its own affair: this is what any way takes, where each subgroup has rows
// of its own and reads all keys and values of a step.
Work work_of(const AttentionCoopmat2Shape& shape, const AttentionSizes& sizes) {
  constexpr double of_score = 12, step = 250;
  const auto blocks = static_cast<double>(ceil_div(sizes.keys, shape.block_k));
  const double width = shape.key_depth(sizes) + shape.value_columns(sizes);
  const double scores = static_cast<double>(shape.block_q) * shape.block_k;
  const double subgroups = shape.staged ? 1 : std::max(1.0, shape.threads / 32.0);
  Work work;
  work.groups = static_cast<double>(ceil_div(sizes.queries, shape.block_q) * sizes.heads * sizes.batch);
  work.threads = shape.threads;
  work.registers = 60 + floats_of(shape, sizes);
  work.shared_bytes =
      shape.staged ? static_cast<double>(shape.shared_bytes(sizes)) : 2.0 * shape.block_k * width;
  work.matrix_multiply_adds = blocks * scores * width;
  work.shared_traffic = blocks * subgroups * 2 * shape.block_k * width;
  work.instructions = blocks * (scores * of_score + step * shape.threads);
  work.moved = sizes.moved_bytes(shape.block_q);
  work.rounds = blocks;
  work.ahead = 1;
  work.resident_bytes = sizes.tensor_bytes();
  return work;
}

std::vector<AttentionCoopmat2Shape> in_order(const std::vector<AttentionCoopmat2Shape>& shapes,
                                             const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  return fastest_first(shapes, context.device(),
                       [&](const AttentionCoopmat2Shape& shape) { return work_of(shape, sizes); });
}

std::vector<AttentionCoopmat2Shape> workgroup_shapes(const LowerContext& context) {
  return in_order(attention_coopmat2_shapes(attention_sizes(context), context.device()), context);
}

std::vector<AttentionCoopmat2Shape> subgroup_shapes(const LowerContext& context) {
  return in_order(attention_flexible_shapes(attention_sizes(context), context.device()), context);
}

}  // namespace

uint32_t AttentionCoopmat2Shape::key_depth(const AttentionSizes& sizes) const {
  return to_u32(round_up(sizes.key_width, key_grain));
}

uint32_t AttentionCoopmat2Shape::value_columns(const AttentionSizes& sizes) const {
  return to_u32(round_up(sizes.value_width, value_grain));
}

std::string AttentionCoopmat2Shape::name() const {
  return std::to_string(block_q) + "x" + std::to_string(block_k) + "/" + std::to_string(threads);
}

uint64_t AttentionCoopmat2Shape::shared_bytes(const AttentionSizes& sizes) const {
  const uint64_t key_pitch = key_depth(sizes) + 8, value_pitch = value_columns(sizes) + 8;
  return 2 * std::max(block_k * (key_pitch + value_pitch), block_q * key_pitch);
}

std::vector<AttentionCoopmat2Shape> attention_coopmat2_shapes(const AttentionSizes& sizes,
                                                              const Capabilities& device) {
  return shapes_of(workgroup_arrangements, false, sizes, device);
}

std::vector<AttentionCoopmat2Shape> attention_flexible_shapes(const AttentionSizes& sizes,
                                                              const Capabilities& device) {
  return shapes_of(subgroup_arrangements, true, sizes, device);
}

Lowered lower_attention_coopmat2_as(const LowerContext& context, const AttentionCoopmat2Shape& shape) {
  const AttentionSizes sizes = attention_sizes(context);
  const uint64_t blocks = ceil_div(sizes.queries, shape.block_q) * sizes.heads * sizes.batch;
  const shader::AttentionParams params = attention_params(context, blocks);
  const bool store_lse = context.attributes().flag("store_lse");

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("attention_coopmat2", shape.staged ? "f16_flexible" : "f16");
  dispatch.constants = {{"local_size", shape.threads},
                        {"threads", shape.threads},
                        {"block_q", shape.block_q},
                        {"block_k", shape.block_k},
                        {"key_width", params.key_width},
                        {"value_width", params.value_width},
                        {"key_depth", shape.key_depth(sizes)},
                        {"value_columns", shape.value_columns(sizes)},
                        {"store_lse", store_lse}};
  dispatch.operands = {Operand::input(attention_input::q), Operand::input(attention_input::k),
                       Operand::input(attention_input::v), Operand::output(0),
                       store_lse ? Operand::output(1) : Operand::nothing()};
  dispatch.set_params(params);
  dispatch.groups = spread_groups(context.device(), blocks);
  if (shape.staged) dispatch.subgroup_size = shape.threads;
  dispatch.note = std::to_string(shape.block_q) + "x" + std::to_string(shape.block_k);
  dispatch.work = work_of(shape, sizes);
  return lowered;
}

std::optional<std::string> refuse_attention_coopmat2(const LowerContext& context) {
  return refuse_as(context, "f16", workgroup_arrangements, false);
}

// The driver's own layouts spare the scores' way through shared memory. Measured on an H100 (driver 580): a
// fifth to a third faster than matrices of a subgroup where each multiprocessor has a block, and a fifth
// slower where not.
double prefer_attention_coopmat2(const LowerContext& context) {
  if (context.device().type == DeviceType::cpu) return 0.3;
  const AttentionSizes sizes = attention_sizes(context);
  const auto blocks = static_cast<double>(ceil_div(sizes.queries, 64) * sizes.heads * sizes.batch);
  return blocks >= compute_units(context.device()) ? 3 : 1.95;
}

Lowered lower_attention_coopmat2(const LowerContext& context) {
  return lower_attention_coopmat2_as(context, configured(context, workgroup_shapes(context)));
}

std::vector<std::string> attention_coopmat2_configurations(const LowerContext& context) {
  return names_of(workgroup_shapes(context));
}

std::optional<std::string> refuse_attention_flexible(const LowerContext& context) {
  return refuse_as(context, "f16_flexible", subgroup_arrangements, true);
}

// One subgroup a workgroup shares its keys and values with nobody: behind the kernel of listed matrices.
double prefer_attention_flexible(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 0.4 : 1.9;
}

Lowered lower_attention_flexible(const LowerContext& context) {
  return lower_attention_coopmat2_as(context, configured(context, subgroup_shapes(context)));
}

std::vector<std::string> attention_flexible_configurations(const LowerContext& context) {
  return names_of(subgroup_shapes(context));
}

}  // namespace vitrine
