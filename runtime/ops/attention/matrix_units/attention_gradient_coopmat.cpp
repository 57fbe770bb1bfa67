// The matrix-unit kernel of attention_gradient
// (shaders/attention/matrix_units/attention_gradient_coopmat.comp).
#include <algorithm>
#include <array>

#include "runtime/ops/attention/attention_gradient_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/cost.h"
#include "runtime/ops/elementwise/magnitude.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"
#include "runtime/ops/products/matrix_units/matrix_units.h"

namespace vitrine {
namespace {

constexpr uint64_t widest = 128;

// How a workgroup works: subgroups along its own rows and along the columns of products and sums, the rows of
// each, and the others of a step. Several along columns share the sums' registers out, and pay with a
// barrier.
struct Arrangement {
  uint32_t subgroups_m, subgroups_n, rows, block_other;
};
constexpr std::array<Arrangement, 15> arrangements{{
    {4, 1, 32, 32},
    {2, 2, 32, 64},
    {2, 2, 32, 32},
    {4, 1, 16, 32},
    {2, 2, 16, 32},
    {2, 4, 16, 64},
    {1, 4, 32, 64},
    {1, 4, 16, 64},
    {1, 2, 16, 32},
    {4, 1, 16, 16},
    {2, 1, 16, 16},
    {1, 1, 16, 16},
    {2, 1, 8, 16},
    {1, 2, 8, 16},
    {1, 1, 8, 16},
}};

uint64_t padded(uint64_t width, uint32_t grain) { return round_up(width, grain); }

// What a subgroup has of the sums' columns.
uint64_t columns_each(const AttentionGradientShape& shape, uint64_t width) {
  return ceil_div(ceil_div(width, shape.matrix.n), shape.subgroups_n) * shape.matrix.n;
}
// As wide as rows lie in shared memory.
uint64_t staged_width(const AttentionGradientShape& shape, uint64_t width) {
  return padded(width, std::max(shape.matrix.k, shape.matrix.n));
}

uint64_t staged_loads(const AttentionGradientShape& shape, const AttentionSizes& sizes) {
  const auto loads = [&](uint64_t width) {
    return ceil_div(shape.block_other * staged_width(shape, width) / 8, shape.threads());
  };
  return loads(sizes.key_width) + loads(sizes.value_width);
}

// Both runs' sums, where own rows are keys; and what needs more of a step: the scores with what they begin
// with, or the next step's rows on their way. With them a product's operands, of as many lanes as share
// them out.
double registers_of(const AttentionGradientShape& shape, const AttentionSizes& sizes,
                    const Capabilities& device) {
  const CooperativeShape& matrix = shape.matrix;
  const uint64_t lanes = shape.subgroup_size;
  const uint64_t sharing =
      device.matrix_operand_lanes != 0 ? std::min<uint64_t>(device.matrix_operand_lanes, lanes) : lanes;
  const uint64_t sums =
      shape.rows() * (columns_each(shape, sizes.key_width) + columns_each(shape, sizes.value_width)) / lanes;
  const uint64_t scores = 2 * uint64_t{shape.rows()} * shape.block_other / shape.subgroups_n / lanes;
  const uint64_t operands = (uint64_t{shape.rows()} + 2 * matrix.n) * matrix.k / 2 / sharing;
  const uint64_t staged = 8 * staged_loads(shape, sizes) + 2;
  return static_cast<double>(sums + std::max(scores, staged) + operands);
}

bool fits(const AttentionGradientShape& shape, const AttentionSizes& sizes, const Capabilities& device,
          uint32_t shared_bytes_at_most) {
  if (device.type == DeviceType::cpu) {
    // It runs matrices for correctness only, and compiles each product on its own: small blocks spare
    // minutes.
    if (shape.block_own() > 16 || shape.block_other > 16) return false;
  } else {
    // Subgroups of 64 lanes share as many registers as two of 32 do (attention_coopmat.cpp).
    const double budget = register_budget(device, shape.subgroup_size);
    if (shape.registers > (shape.subgroup_size > 32 ? std::min(budget, 72.0) : 0.8 * budget)) return false;
  }
  return fills_subgroups(device, shape.threads()) && shape.threads() <= device.max_workgroup_invocations &&
         shape.threads() <= device.max_workgroup_size[0] &&
         (device.max_workgroup_subgroups == 0 || shape.subgroups() <= device.max_workgroup_subgroups) &&
         shape.shared_bytes(sizes) <= shared_bytes_at_most;
}

std::optional<AttentionGradientShape> shape_of(const Arrangement& a, const CooperativeShape& matrix,
                                               uint32_t subgroup_size) {
  const uint32_t scores = a.block_other / a.subgroups_n;
  if (a.rows % matrix.m != 0 || scores % matrix.n != 0 || a.block_other % matrix.k != 0) return std::nullopt;
  return AttentionGradientShape{.matrix = matrix,
                                .subgroup_size = subgroup_size,
                                .subgroups_m = a.subgroups_m,
                                .subgroups_n = a.subgroups_n,
                                .blocks_m = a.rows / matrix.m,
                                .block_other = a.block_other};
}

// Of one run.
Work work_of(const AttentionGradientShape& shape, const AttentionSizes& sizes, bool own_keys) {
  constexpr double of_score = 16, staged_load = 24, fragment_load = 2, product = 2, step = 250;
  const CooperativeShape& matrix = shape.matrix;
  const uint64_t own = own_keys ? sizes.keys : sizes.queries, others = own_keys ? sizes.queries : sizes.keys;
  const auto blocks = static_cast<double>(ceil_div(others, shape.block_other));
  const auto key_depth = static_cast<double>(padded(sizes.key_width, matrix.k)),
             value_depth = static_cast<double>(padded(sizes.value_width, matrix.k)),
             key_columns = static_cast<double>(columns_each(shape, sizes.key_width)),
             value_columns = own_keys ? static_cast<double>(columns_each(shape, sizes.value_width)) : 0;
  const double rows = shape.rows(), other = shape.block_other, scores = rows * other / shape.subgroups_n;
  // Of a step of a subgroup.
  const double multiplied = scores * (key_depth + value_depth) + rows * other * (key_columns + value_columns);
  const double fragments = 2 * ((rows + other / shape.subgroups_n) * (key_depth + value_depth) +
                                other * (key_columns + value_columns) + (own_keys ? 2 : 1) * rows * other);
  const double products = multiplied / (static_cast<double>(matrix.m) * matrix.n * matrix.k);
  const auto staged =
      static_cast<double>(shape.block_other) *
      static_cast<double>(staged_width(shape, sizes.key_width) + staged_width(shape, sizes.value_width));
  Work work;
  work.groups = static_cast<double>(ceil_div(own, shape.block_own()) * sizes.heads * sizes.batch);
  work.threads = shape.threads();
  work.subgroup_size = shape.subgroup_size;
  work.registers = shape.registers;
  work.shared_bytes = static_cast<double>(shape.shared_bytes(sizes));
  work.matrix_multiply_adds = blocks * shape.subgroups() * multiplied / shape.speed;
  work.shared_traffic = blocks * shape.subgroups() * (fragments + 8 * scores);
  work.instructions = blocks * (shape.subgroups() * (scores * of_score + fragments / 16 * fragment_load +
                                                     (products * product + step) * shape.subgroup_size) +
                                staged / 8 * staged_load);
  work.moved = static_cast<double>(sizes.bytes) *
               static_cast<double>((others + (own_keys ? 2 : 1) * shape.block_own()) *
                                   (sizes.key_width + sizes.value_width));
  work.rounds = blocks * (shape.subgroups_n > 1 ? 1.5 : 1);
  work.ahead = 1;
  work.resident_bytes = sizes.tensor_bytes();
  return work;
}

std::vector<AttentionGradientShape> in_order(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  std::vector<std::pair<double, AttentionGradientShape>> timed;
  for (const AttentionGradientShape& shape : attention_gradient_shapes(sizes, context.device())) {
    double seconds = 0;
    for (const bool own_keys : {false, true}) {
      seconds += estimate(work_of(shape, sizes, own_keys), context.device()).seconds;
    }
    timed.emplace_back(seconds, shape);
  }
  std::ranges::stable_sort(timed, {}, [](const auto& each) { return each.first; });
  std::vector<AttentionGradientShape> shapes;
  for (auto& [seconds, shape] : timed) shapes.push_back(std::move(shape));
  return shapes;
}

}  // namespace

uint64_t AttentionGradientShape::shared_bytes(const AttentionSizes& sizes) const {
  const uint64_t own = block_own(), other = block_other;
  const uint64_t pitches =
      staged_width(*this, sizes.key_width) / 8 + staged_width(*this, sizes.value_width) / 8 + 2;
  const uint64_t weights = own * (other / 8 + 1);
  const uint64_t of_queries = weights + 2 * own * (matrix.n / 4) + other * (matrix.m / 4);
  const uint64_t of_keys = 2 * weights + 2 * other * (matrix.m / 4);
  const uint64_t loop = (own + other) * pitches + std::max(of_queries, of_keys);
  const uint64_t sums = uint64_t{subgroups()} * rows() * (matrix.n / 4);
  return 16 * std::max(loop, sums);
}

std::string AttentionGradientShape::name() const {
  const auto by = [](uint32_t a, uint32_t b, uint32_t c) {
    return std::to_string(a) + "x" + std::to_string(b) + "x" + std::to_string(c);
  };
  return by(subgroups_m, subgroups_n, blocks_m) + "x" + std::to_string(block_other) + "/" +
         by(matrix.m, matrix.n, matrix.k) + "/" + std::to_string(subgroup_size);
}

std::vector<AttentionGradientShape> attention_gradient_shapes(const AttentionSizes& sizes,
                                                              const Capabilities& device) {
  const std::vector<CooperativeShape> matrices = half_matrices(device);
  std::vector<AttentionGradientShape> in_budget, fitting;
  for (const uint32_t subgroup_size : matrix_subgroup_sizes(device)) {
    for (const CooperativeShape& matrix : matrices) {
      if (matrix.n % 8 != 0 || matrix.m % 4 != 0 || !lists_half_sums(device, matrix)) continue;
      if (std::max(matrix.k, matrix.n) % std::min(matrix.k, matrix.n) != 0) continue;
      for (const Arrangement& arrangement : arrangements) {
        auto shape = shape_of(arrangement, matrix, subgroup_size);
        if (!shape) continue;
        shape->registers = registers_of(*shape, sizes, device);
        // A smaller matrix is more instructions for the same work.
        if (matrix != matrices.front()) shape->speed *= 0.8;
        if (!fits(*shape, sizes, device, device.max_shared_bytes)) continue;
        fitting.push_back(*shape);
        if (fits(*shape, sizes, device, shared_budget(device, shape->subgroups())))
          in_budget.push_back(*shape);
      }
    }
  }
  return in_budget.empty() ? fitting : in_budget;
}

std::optional<std::string> refuse_attention_gradient_coopmat(const LowerContext& context) {
  if (!is_attention_rounded(context.attributes()))
    return "matrix units multiply f16, and nothing may be rounded";
  if (auto reason = refuse_drops(context)) return reason;
  if (auto reason = refuse_relative_bias(context)) return reason;
  if (context.attributes().number("scale") <= 0)
    return "its scores begin with the log-sum-exp over scale, and scale is not positive";
  const AttentionSizes sizes = attention_sizes(context);
  if (std::max(sizes.key_width, sizes.value_width) > widest) {
    return "heads are " + std::to_string(std::max(sizes.key_width, sizes.value_width)) + " wide, at most " +
           std::to_string(widest) + " is possible";
  }
  if (auto reason = refuse(context, "attention_gradient_coopmat", "rounded")) return reason;
  for (const char* shader : {"attention_gradient_deltas", "magnitude", "zeros"}) {
    if (auto reason = refuse(context, shader, "f32")) return reason;
  }
  if (half_matrices(context.device()).empty()) return "the device lists no matrix of f16 x f16 + f32";
  // Mesa's compiler for Intel spills a hundred values of it even for heads of 16.
  if (context.device().subgroup_registers != 0) {
    return "the lanes of a subgroup share their registers, which are too few for its sums, scores and "
           "operands";
  }
  if (std::ranges::none_of(half_matrices(context.device()), [&](const CooperativeShape& matrix) {
        return lists_half_sums(context.device(), matrix);
      })) {
    return "the device lists no sums of f16, as which weights are stored";
  }
  if (attention_gradient_shapes(sizes, context.device()).empty()) {
    return "no block of its matrices fits the device's workgroups and registers";
  }
  return std::nullopt;
}

// A software driver runs matrices for correctness only.
double prefer_attention_gradient_coopmat(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 0.5 : 2;
}

Lowered lower_attention_gradient_coopmat(const LowerContext& context) {
  using namespace attention_gradient_input;
  const AttentionSizes sizes = attention_sizes(context);
  const AttentionGradientShape shape = configured(context, in_order(context));
  const CooperativeShape& matrix = shape.matrix;
  const auto outputs = attention_gradient_outputs(context.attributes());

  Lowered lowered;
  clear_unread_columns(context, lowered);
  const Operand statistics = append_query_statistics(context, lowered);
  const uint32_t largest = to_u32(lowered.scratch.size());
  lowered.scratch.insert(lowered.scratch.end(), 2, sizeof(float));
  const Operand given_largest = Operand::scratch(largest), value_largest = Operand::scratch(largest + 1);
  // Where v is a part of a projection's output it is all of that whose largest is found.
  for (const auto& [input, into] :
       {std::pair{out_gradient, given_largest}, {attention_input::v, value_largest}}) {
    append_magnitude(context, lowered, DType::f32, Operand::input(input),
                     context.input(input).shape.elements(), into);
  }

  const AttentionSide queries = query_side(context), keys = key_side(context);
  const auto run = [&](const AttentionSide& own, const AttentionSide& other, bool own_keys, Operand first,
                       Operand second) {
    const uint64_t blocks = ceil_div(own.tokens, shape.block_own()) * sizes.heads * sizes.batch;
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader("attention_gradient_coopmat", "rounded");
    dispatch.constants = {{"local_size", shape.threads()},
                          {"subgroup_size", shape.subgroup_size},
                          {"matrix_m", matrix.m},
                          {"matrix_n", matrix.n},
                          {"matrix_k", matrix.k},
                          {"subgroups_m", shape.subgroups_m},
                          {"subgroups_n", shape.subgroups_n},
                          {"blocks_m", shape.blocks_m},
                          {"block_other", shape.block_other},
                          {"key_width", to_u32(sizes.key_width)},
                          {"value_width", to_u32(sizes.value_width)},
                          {"by_four", sides_by_four(sizes, own, other)},
                          {"own_keys", own_keys}};
    dispatch.operands = {Operand::input(own.keys_at),
                         Operand::input(own.values_at),
                         Operand::input(other.keys_at),
                         Operand::input(other.values_at),
                         statistics,
                         given_largest,
                         value_largest,
                         first,
                         second};
    dispatch.set_params(attention_gradient_params(context, own, other, blocks));
    dispatch.groups = spread_groups(context.device(), blocks);
    dispatch.subgroup_size = shape.subgroup_size;
    dispatch.note = std::to_string(shape.block_own()) + "x" + std::to_string(shape.block_other) + " of " +
                    std::to_string(matrix.m) + "x" + std::to_string(matrix.n) + "x" +
                    std::to_string(matrix.k) + (own_keys ? " of keys" : " of queries");
    dispatch.work = work_of(shape, sizes, own_keys);
  };
  run(queries, keys, false, Operand::output(outputs[attention_input::q]), Operand::nothing());
  run(keys, queries, true, Operand::output(outputs[attention_input::k]),
      Operand::output(outputs[attention_input::v]));
  return lowered;
}

std::vector<std::string> attention_gradient_coopmat_configurations(const LowerContext& context) {
  return names_of(in_order(context));
}

}  // namespace vitrine
