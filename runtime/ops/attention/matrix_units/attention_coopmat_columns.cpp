// The matrix-unit kernel of attention whose scores never leave the registers
// (shaders/attention/matrix_units/attention_coopmat_columns.comp).
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

// How a workgroup works: subgroups, the queries of each, and the keys of a step. With two matrices of queries
// each fragment of keys and values that is read from shared memory serves two products.
struct Arrangement {
  uint32_t subgroups, queries, block_k;
};
constexpr std::array<Arrangement, 13> arrangements{{
    {4, 32, 64},
    {4, 32, 32},
    {4, 16, 64},
    {4, 16, 32},
    {2, 16, 32},
    {8, 16, 16},
    {4, 16, 16},
    {2, 16, 16},
    {1, 16, 16},
    {16, 8, 16},
    {8, 8, 16},
    {2, 8, 16},
    {1, 8, 16},
}};

uint64_t padded(uint64_t width, uint32_t grain) { return round_up(width, grain); }

// Whether a subgroup's sums and operands lie as the device's MatrixSums say: that is known of the lanes that
// the matrix units are made for alone.
bool lies_as_known(const CooperativeShape& matrix, uint32_t subgroup_size, const Capabilities& device) {
  const uint32_t native =
      device.matrix_subgroup_size != 0 ? device.matrix_subgroup_size : device.subgroup_size;
  if (subgroup_size != native || subgroup_size % matrix.n != 0 || matrix.k != matrix.m) return false;
  const uint32_t column_lanes = subgroup_size / matrix.n;
  if (matrix.m % (4 * column_lanes) != 0) return false;  // a lane stores four neighbours
  switch (device.matrix_sums) {
    case MatrixSums::unknown:
      return false;
    case MatrixSums::operands:
      return true;
    case MatrixSums::alternate:
      return column_lanes == 2;
    case MatrixSums::transposed:
      return column_lanes == 1 && matrix.m == matrix.n;
  }
  return false;
}

uint64_t query_registers(const AttentionColumnsShape& shape, const AttentionSizes& sizes,
                         const Capabilities& device) {
  const uint32_t sharing = device.matrix_operand_lanes != 0
                               ? std::min(device.matrix_operand_lanes, shape.subgroup_size)
                               : shape.subgroup_size;
  return ceil_div(shape.queries_each() * padded(sizes.key_width, shape.matrix.k) / 2, sharing);
}

// Keys and values on their way, scores, sums of values, and queries.
uint64_t registers_of(const AttentionColumnsShape& shape, const AttentionSizes& sizes,
                      const Capabilities& device) {
  const uint64_t keys = shape.block_k * padded(sizes.key_width, shape.matrix.k) / 8;
  const uint64_t values = padded(sizes.value_width, shape.matrix.m);
  const uint64_t staged = 4 * ceil_div(keys, shape.threads()) +
                          8 * ceil_div(shape.block_k / 2 * padded(values, 8) / 8, shape.threads());
  return staged + shape.queries_each() * (shape.block_k + values) / shape.subgroup_size +
         query_registers(shape, sizes, device);
}

bool fits(const AttentionColumnsShape& shape, const AttentionSizes& sizes, const Capabilities& device,
          uint32_t shared_bytes_at_most) {
  if (device.type == DeviceType::cpu) {
    // It runs matrices for correctness only, and compiles each product on its own: small blocks spare
    // minutes.
    if (shape.block_q() > 16 || shape.block_k > 16 || sizes.key_width > 64) return false;
  } else if (shape.registers > register_budget(device, shape.subgroup_size)) {
    return false;
  }
  return fills_subgroups(device, shape.threads()) && shape.threads() <= device.max_workgroup_invocations &&
         shape.threads() <= device.max_workgroup_size[0] &&
         (device.max_workgroup_subgroups == 0 || shape.subgroups <= device.max_workgroup_subgroups) &&
         shape.shared_bytes(sizes) <= shared_bytes_at_most;
}

Work work_of(const AttentionColumnsShape& shape, const AttentionSizes& sizes) {
  constexpr double of_score = 8, staged_load = 20, fragment_load = 2, product = 2, step = 100;
  const CooperativeShape& matrix = shape.matrix;
  const auto blocks = static_cast<double>(ceil_div(sizes.keys, shape.block_k));
  const auto width =
      static_cast<double>(padded(sizes.key_width, matrix.k) + padded(sizes.value_width, matrix.m));
  const double scores = static_cast<double>(shape.queries_each()) * shape.block_k;
  const double fragments = 2 * shape.block_k * width;
  const double products = scores * width / (static_cast<double>(matrix.m) * matrix.n * matrix.k);
  Work work;
  work.groups = static_cast<double>(ceil_div(sizes.queries, shape.block_q()) * sizes.heads * sizes.batch);
  work.threads = shape.threads();
  work.subgroup_size = shape.subgroup_size;
  work.registers = shape.registers;
  work.shared_bytes = static_cast<double>(shape.shared_bytes(sizes));
  work.matrix_multiply_adds = blocks * shape.subgroups * scores * width / shape.speed;
  work.shared_traffic = blocks * shape.subgroups * fragments;
  work.instructions = blocks * (shape.subgroups * (scores * of_score + fragments / 16 * fragment_load +
                                                   (products * product + step) * shape.subgroup_size) +
                                shape.block_k * width / 8 * staged_load);
  work.moved = sizes.moved_bytes(shape.block_q());
  work.rounds = blocks;
  work.ahead = 1;
  work.resident_bytes = sizes.tensor_bytes();
  return work;
}

std::vector<AttentionColumnsShape> in_order(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  return fastest_first(attention_columns_shapes(sizes, context.device()), context.device(),
                       [&](const AttentionColumnsShape& shape) { return work_of(shape, sizes); });
}

}  // namespace

uint64_t AttentionColumnsShape::shared_bytes(const AttentionSizes& sizes) const {
  const uint64_t key_pitch = padded(sizes.key_width, matrix.k) / 2 + 4;
  const uint64_t value_matrices = ceil_div(padded(padded(sizes.value_width, matrix.m), 8), matrix.m);
  const uint64_t values = value_matrices * (matrix.m * (block_k / 2 + 4) + 4);
  return 4 * std::max(block_q() * key_pitch, block_k * key_pitch + values);
}

std::string AttentionColumnsShape::name() const {
  const auto by = [](uint32_t a, uint32_t b, uint32_t c) {
    return std::to_string(a) + "x" + std::to_string(b) + "x" + std::to_string(c);
  };
  return by(subgroups, blocks_n, block_k) + "/" + by(matrix.m, matrix.n, matrix.k) + "/" +
         std::to_string(subgroup_size);
}

std::vector<AttentionColumnsShape> attention_columns_shapes(const AttentionSizes& sizes,
                                                            const Capabilities& device) {
  const std::vector<CooperativeShape> matrices = half_matrices(device);
  std::vector<AttentionColumnsShape> in_budget, fitting;
  for (const uint32_t subgroup_size : matrix_subgroup_sizes(device)) {
    for (const CooperativeShape& matrix : matrices) {
      if (!lies_as_known(matrix, subgroup_size, device)) continue;
      for (const Arrangement& a : arrangements) {
        if (a.queries % matrix.n != 0 || a.block_k % matrix.k != 0) continue;
        AttentionColumnsShape shape{matrix, subgroup_size, a.subgroups, a.queries / matrix.n, a.block_k};
        shape.registers = static_cast<double>(registers_of(shape, sizes, device));
        if (!fits(shape, sizes, device, device.max_shared_bytes)) continue;
        // A smaller matrix is more instructions for the same work.
        if (matrix != matrices.front()) shape.speed *= 0.8;
        fitting.push_back(shape);
        if (fits(shape, sizes, device, shared_budget(device, shape.subgroups))) in_budget.push_back(shape);
      }
    }
  }
  // The widest heads leave no room for a second workgroup.
  return in_budget.empty() ? fitting : in_budget;
}

Lowered lower_attention_columns_as(const LowerContext& context, const AttentionColumnsShape& shape) {
  const AttentionSizes sizes = attention_sizes(context);
  const uint64_t blocks = ceil_div(sizes.queries, shape.block_q()) * sizes.heads * sizes.batch;
  shader::AttentionParams params = attention_params(context, blocks);
  params.scale *= std::numbers::log2e_v<float>;
  const bool store_lse = context.attributes().flag("store_lse");
  const bool eights = rows_by_eight(params);
  const CooperativeShape& matrix = shape.matrix;
  const MatrixSums sums = context.device().matrix_sums;

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("attention_coopmat_columns", "f16");
  dispatch.constants = {{"local_size", shape.threads()},
                        {"subgroup_size", shape.subgroup_size},
                        {"matrix_m", matrix.m},
                        {"matrix_n", matrix.n},
                        {"matrix_k", matrix.k},
                        {"subgroups", shape.subgroups},
                        {"blocks_n", shape.blocks_n},
                        {"block_k", shape.block_k},
                        {"key_width", params.key_width},
                        {"value_width", params.value_width},
                        {"by_eight", eights},
                        {"alternate", sums == MatrixSums::alternate},
                        {"transposed", sums == MatrixSums::transposed},
                        {"store_lse", store_lse}};
  dispatch.operands = staged_attention_operands(eights, store_lse);
  dispatch.set_params(params);
  dispatch.groups = spread_groups(context.device(), blocks);
  dispatch.subgroup_size = shape.subgroup_size;
  dispatch.note = std::to_string(shape.block_q()) + "x" + std::to_string(shape.block_k) + " of " +
                  std::to_string(matrix.m) + "x" + std::to_string(matrix.n) + "x" + std::to_string(matrix.k);
  dispatch.work = work_of(shape, sizes);
  return lowered;
}

std::optional<std::string> refuse_attention_columns(const LowerContext& context) {
  if (auto reason = refuse_relative_bias(context)) return reason;
  if (auto reason = refuse_staged_attention(context, "attention_coopmat_columns", "f16")) return reason;
  if (context.device().matrix_sums == MatrixSums::unknown)
    return "it isn't known how the device's matrices lie in its lanes";
  if (attention_columns_shapes(attention_sizes(context), context.device()).empty()) {
    return "no block of its matrices fits the device's workgroups and registers";
  }
  return std::nullopt;
}

// A software driver runs matrices for correctness only.
double prefer_attention_columns(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 0.25 : 2.5;
}

Lowered lower_attention_columns(const LowerContext& context) {
  return lower_attention_columns_as(context, configured(context, in_order(context)));
}

std::vector<std::string> attention_columns_configurations(const LowerContext& context) {
  return names_of(in_order(context));
}

}  // namespace vitrine
