// The matrix-unit kernel of attention (shaders/attention/matrix_units/attention_coopmat.comp).
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <array>
#include <numbers>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/cost.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"
#include "runtime/ops/products/matrix_units/matrix_units.h"

namespace vitrine {
namespace {

constexpr uint64_t widest = 256;

// How a workgroup works: subgroups, the rows of queries of each, and the keys of a step. With 32 rows each
// fragment of keys and values that is read from shared memory serves two products.
struct Arrangement {
  uint32_t subgroups, rows, block_k;
};
constexpr std::array<Arrangement, 13> arrangements{{
    {4, 32, 64},
    {4, 32, 32},
    {4, 16, 64},
    {4, 16, 32},
    {2, 16, 32},
    {4, 16, 16},
    {1, 16, 32},
    {2, 16, 16},
    {16, 8, 16},
    {8, 8, 16},
    {2, 8, 16},
    {1, 16, 16},
    {1, 8, 16},
}};

// Registers of an invocation: what NVK and RADV add for fragments and addresses is up to 60 of 256. Subgroups
// of 64 lanes share as many as two of 32 do, and each lane holds as large a fragment: with more than half of
// them, RDNA 3 fits only two subgroups on a SIMD.
double most_registers(const Capabilities& device, uint32_t subgroup_size) {
  const double budget = register_budget(device, subgroup_size);
  return subgroup_size > 32 ? std::min(budget, 72.0) : budget;
}
double most_registers_with_queries(const Capabilities& device, uint32_t subgroup_size) {
  constexpr double unrolled = 0.8;  // what is left, where the products are unrolled over a head's width
  return subgroup_size > 32 ? most_registers(device, subgroup_size)
                            : unrolled * register_budget(device, subgroup_size);
}

uint64_t padded(uint64_t width, uint32_t grain) { return round_up(width, grain); }

// Of the keys and values that are on their way, as memory has them.
uint64_t staged_registers(const AttentionCoopmatShape& shape, const AttentionSizes& sizes) {
  const auto load = [&](uint64_t width) {
    return 2 * sizes.bytes * ceil_div(shape.block_k * width / 8, shape.threads());
  };
  return load(padded(sizes.key_width, shape.matrix.k)) + load(padded(sizes.value_width, shape.matrix.n));
}

// These, scores, and sums of values.
uint64_t registers_without_queries(const AttentionCoopmatShape& shape, const AttentionSizes& sizes) {
  const uint64_t values = padded(sizes.value_width, shape.matrix.n);
  return shape.rows() * (shape.block_k + values) / shape.subgroup_size + staged_registers(shape, sizes);
}

// Two of f16 in a register, of as many lanes as share A's fragments out.
uint64_t query_registers(const AttentionCoopmatShape& shape, const AttentionSizes& sizes,
                         const Capabilities& device) {
  const uint32_t sharing = device.matrix_operand_lanes != 0
                               ? std::min(device.matrix_operand_lanes, shape.subgroup_size)
                               : shape.subgroup_size;
  return ceil_div(shape.rows() * padded(sizes.key_width, shape.matrix.k) / 2, sharing);
}

// Where a subgroup's lanes share its registers, the compiler (Mesa's for Intel) loads all operands of an
// unrolled product early, and addresses count: each is as long as what it loads, and value by value there are
// more of them. Without queries in registers it spills; counted once, heads of 48 spill on Xe2.
bool fits_shared_registers(const AttentionCoopmatShape& shape, const AttentionSizes& sizes,
                           const Capabilities& device) {
  constexpr uint64_t counters = 8;
  const uint64_t operands =
      shape.block_k * padded(sizes.value_width, shape.matrix.n) / 2 / shape.subgroup_size;
  const uint64_t addresses =
      ((sizes.key_width | sizes.value_width) % 8 == 0 ? 1 : 5) * staged_registers(shape, sizes);
  const uint64_t registers = registers_without_queries(shape, sizes) +
                             2 * query_registers(shape, sizes, device) + operands + addresses + counters;
  return static_cast<double>(registers) <= registers_of_lane(device, shape.subgroup_size);
}

bool fits(const AttentionCoopmatShape& shape, const AttentionSizes& sizes, const Capabilities& device,
          uint32_t shared_bytes_at_most) {
  if (device.type == DeviceType::cpu) {
    // It runs matrices for correctness only, and compiles each product on its own: small blocks spare
    // minutes.
    if (shape.block_q() > 16 || shape.block_k > 16) return false;
  } else if (static_cast<double>(registers_without_queries(shape, sizes)) >
             most_registers(device, shape.subgroup_size)) {
    return false;
  }
  if (device.subgroup_registers != 0 && !fits_shared_registers(shape, sizes, device)) return false;
  return fills_subgroups(device, shape.threads()) && shape.threads() <= device.max_workgroup_invocations &&
         shape.threads() <= device.max_workgroup_size[0] &&
         (device.max_workgroup_subgroups == 0 || shape.subgroups <= device.max_workgroup_subgroups) &&
         shape.shared_bytes(sizes) <= shared_bytes_at_most;
}

std::optional<AttentionCoopmatShape> shape_of(const Arrangement& a, const CooperativeShape& matrix,
                                              uint32_t subgroup_size, const AttentionSizes& sizes,
                                              const Capabilities& device) {
  if (a.rows % matrix.m != 0 || a.block_k % matrix.n != 0 || a.block_k % matrix.k != 0) return std::nullopt;
  const bool divides = a.rows > subgroup_size ? a.rows % subgroup_size == 0 : subgroup_size % a.rows == 0;
  const uint32_t sharers = std::max(1u, subgroup_size / a.rows);
  // Lanes that share a row take eight of its scores at a time.
  if (!divides || a.block_k % (8 * sharers) != 0) return std::nullopt;
  AttentionCoopmatShape shape{matrix, subgroup_size, a.subgroups, a.rows / matrix.m, a.block_k, false};
  // Without queries in registers the products aren't unrolled over a head's width.
  const uint64_t queries = query_registers(shape, sizes, device);
  const bool fit = static_cast<double>(registers_without_queries(shape, sizes) + queries) <=
                   most_registers_with_queries(device, subgroup_size);
  shape.keep_queries =
      device.subgroup_registers != 0 || (fit && (device.type != DeviceType::cpu || queries <= 32));
  return shape;
}

Work work_of(const AttentionCoopmatShape& shape, const AttentionSizes& sizes) {
  // What a score costs beside its products: an exponential, maxima and sums; sixteen bytes from memory to
  // shared memory, sixteen of a fragment to registers; and a step's barriers, maxima and corrections, by what
  // NVK makes of 64x16, 64x32 and 128x32 (docs/zoo.md).
  const double staged_load = sizes.bytes == 4 ? 24 : 12;
  constexpr double of_score = 16, fragment_load = 2, product = 2, step = 250;
  const CooperativeShape& matrix = shape.matrix;
  const auto blocks = static_cast<double>(ceil_div(sizes.keys, shape.block_k));
  const auto width =
      static_cast<double>(padded(sizes.key_width, matrix.k) + padded(sizes.value_width, matrix.n));
  // Of a step of a subgroup. Scores go through its patch as f32, and come back as f16.
  const double scores = static_cast<double>(shape.rows()) * shape.block_k;
  const auto queries = static_cast<double>(shape.rows() * padded(sizes.key_width, matrix.k) * 2);
  const double fragments = 2 * shape.block_k * width + (shape.keep_queries ? 0 : queries);
  const double products = scores * width / (static_cast<double>(matrix.m) * matrix.n * matrix.k);
  Work work;
  work.groups = static_cast<double>(ceil_div(sizes.queries, shape.block_q()) * sizes.heads * sizes.batch);
  work.threads = shape.threads();
  work.subgroup_size = shape.subgroup_size;
  work.registers = shape.registers;
  work.shared_bytes = static_cast<double>(shape.shared_bytes(sizes));
  work.matrix_multiply_adds = blocks * shape.subgroups * scores * width / shape.speed;
  work.shared_traffic = blocks * shape.subgroups * (fragments + 12 * scores);
  work.instructions = blocks * (shape.subgroups * (scores * of_score + fragments / 16 * fragment_load +
                                                   (products * product + step) * shape.subgroup_size) +
                                shape.block_k * width / 8 * staged_load);
  work.moved = sizes.moved_bytes(shape.block_q());
  work.rounds = blocks;
  work.ahead = 1;
  work.resident_bytes = sizes.tensor_bytes();
  return work;
}

std::vector<AttentionCoopmatShape> in_order(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  return fastest_first(attention_coopmat_shapes(sizes, context.device()), context.device(),
                       [&](const AttentionCoopmatShape& shape) { return work_of(shape, sizes); });
}

std::string_view variant_of(const LowerContext& context) {
  return is_attention_rounded(context.attributes()) ? "rounded" : "f16";
}

}  // namespace

uint64_t AttentionCoopmatShape::shared_bytes(const AttentionSizes& sizes) const {
  const uint64_t key_pitch = padded(sizes.key_width, matrix.k) / 8 + 1;
  const uint64_t value_pitch = padded(sizes.value_width, matrix.n) / 8 + 1;
  const uint64_t patch_pitch = std::max(block_k / 4, block_k / 8 + matrix.n / 4) | 1;
  const uint64_t queries = block_q() * key_pitch;
  const uint64_t rest = block_k * (key_pitch + value_pitch) + block_q() * patch_pitch;
  return 16 * (keep_queries ? std::max(queries, rest) : queries + rest);
}

std::string AttentionCoopmatShape::name() const {
  const auto by = [](uint32_t a, uint32_t b, uint32_t c) {
    return std::to_string(a) + "x" + std::to_string(b) + "x" + std::to_string(c);
  };
  return by(subgroups, blocks_m, block_k) + "/" + by(matrix.m, matrix.n, matrix.k) + "/" +
         std::to_string(subgroup_size);
}

std::vector<AttentionCoopmatShape> attention_coopmat_shapes(const AttentionSizes& sizes,
                                                            const Capabilities& device) {
  const std::vector<CooperativeShape> matrices = half_matrices(device);
  std::vector<AttentionCoopmatShape> in_budget, fitting;
  for (const uint32_t subgroup_size : matrix_subgroup_sizes(device)) {
    for (const CooperativeShape& matrix : matrices) {
      if (matrix.n % 8 != 0) continue;
      for (const Arrangement& arrangement : arrangements) {
        auto shape = shape_of(arrangement, matrix, subgroup_size, sizes, device);
        if (!shape || !fits(*shape, sizes, device, device.max_shared_bytes)) continue;
        shape->registers =
            static_cast<double>(registers_without_queries(*shape, sizes) +
                                (shape->keep_queries ? query_registers(*shape, sizes, device) : 0));
        // A smaller matrix is more instructions for the same work.
        if (matrix != matrices.front()) shape->speed *= 0.8;
        fitting.push_back(*shape);
        if (fits(*shape, sizes, device, shared_budget(device, shape->subgroups))) in_budget.push_back(*shape);
      }
    }
  }
  // The widest heads leave no room for a second workgroup.
  return in_budget.empty() ? fitting : in_budget;
}

Lowered lower_attention_coopmat_as(const LowerContext& context, const AttentionCoopmatShape& shape) {
  const AttentionSizes sizes = attention_sizes(context);
  const uint64_t blocks = ceil_div(sizes.queries, shape.block_q()) * sizes.heads * sizes.batch;
  shader::AttentionParams params = attention_params(context, blocks);
  params.scale *= std::numbers::log2e_v<float>;
  const bool store_lse = context.attributes().flag("store_lse");
  const bool eights = rows_by_eight(params);
  const CooperativeShape& matrix = shape.matrix;

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("attention_coopmat", variant_of(context));
  dispatch.constants = {{"local_size", shape.threads()},
                        {"subgroup_size", shape.subgroup_size},
                        {"matrix_m", matrix.m},
                        {"matrix_n", matrix.n},
                        {"matrix_k", matrix.k},
                        {"subgroups", shape.subgroups},
                        {"blocks_m", shape.blocks_m},
                        {"block_k", shape.block_k},
                        {"key_width", params.key_width},
                        {"value_width", params.value_width},
                        {"by_eight", eights},
                        {"keep_queries", shape.keep_queries},
                        {"store_lse", store_lse}};
  add_relative_bias(context, dispatch);
  dispatch.operands = staged_attention_operands(eights, store_lse);
  dispatch.operands.push_back(relative_bias_operand(context, attention_input::bias));
  dispatch.set_params(params);
  dispatch.groups = spread_groups(context.device(), blocks);
  dispatch.subgroup_size = shape.subgroup_size;
  dispatch.note = std::to_string(shape.block_q()) + "x" + std::to_string(shape.block_k) + " of " +
                  std::to_string(matrix.m) + "x" + std::to_string(matrix.n) + "x" + std::to_string(matrix.k);
  dispatch.work = work_of(shape, sizes);
  return lowered;
}

bool rows_by_eight(const shader::AttentionParams& p) {
  return (p.key_width | p.value_width | p.q_stride | p.k_stride | p.v_stride | p.q_offset | p.k_offset |
          p.v_offset) %
             8 ==
         0;
}

std::vector<Operand> staged_attention_operands(bool eights, bool store_lse) {
  const std::array inputs{Operand::input(attention_input::q), Operand::input(attention_input::k),
                          Operand::input(attention_input::v)};
  std::vector<Operand> operands(3, Operand::nothing());
  if (eights) operands.assign(inputs.begin(), inputs.end());
  operands.push_back(Operand::output(0));
  operands.push_back(store_lse ? Operand::output(1) : Operand::nothing());
  for (const Operand& input : inputs) operands.push_back(eights ? Operand::nothing() : input);
  return operands;
}

std::optional<std::string> refuse_staged_attention(const LowerContext& context, std::string_view shader,
                                                   std::string_view variant) {
  if (variant == "f16" && context.input(attention_input::q).dtype != DType::f16)
    return "matrix units multiply f16, q is f32";
  if (auto reason = refuse_drops(context)) return reason;
  if (auto reason = refuse_causal(context)) return reason;
  if (context.attributes().number("scale") <= 0)
    return "it scales the maximum of a query alone, and scale is not positive";
  if (auto reason = refuse(context, shader, variant)) return reason;
  const AttentionSizes sizes = attention_sizes(context);
  if (std::max(sizes.key_width, sizes.value_width) > widest) {
    return "heads are " + std::to_string(std::max(sizes.key_width, sizes.value_width)) + " wide, at most " +
           std::to_string(widest) + " is possible";
  }
  constexpr uint32_t needed = VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT;
  if ((context.device().subgroup_operations & needed) != needed) {
    return "the device's subgroups neither shuffle nor vote";
  }
  if (half_matrices(context.device()).empty()) return "the device lists no matrix of f16 x f16 + f32";
  return std::nullopt;
}

std::optional<std::string> refuse_attention_coopmat(const LowerContext& context) {
  if (auto reason = refuse_staged_attention(context, "attention_coopmat", variant_of(context))) return reason;
  if (attention_coopmat_shapes(attention_sizes(context), context.device()).empty()) {
    return "no block of its matrices fits the device's workgroups and registers";
  }
  return std::nullopt;
}

// A software driver runs matrices for correctness only.
double prefer_attention_coopmat(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 0.5 : 2;
}

Lowered lower_attention_coopmat(const LowerContext& context) {
  return lower_attention_coopmat_as(context, configured(context, in_order(context)));
}

std::vector<std::string> attention_coopmat_configurations(const LowerContext& context) {
  return names_of(in_order(context));
}

}  // namespace vitrine
