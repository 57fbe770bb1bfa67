#include "runtime/ops/norms/layer_norm_gradient.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/sum_rows.h"
#include "runtime/ops/norms/kept_rows.h"
#include "shaders/norms/layer_norm.h"
#include "shaders/norms/layer_norm_gradient.h"

namespace vitrine {
namespace {

constexpr uint32_t dy_input = 0, x_input = 1, gamma_input = 2, residual_input = 3;

bool wants_parameters(const Attributes& attributes) { return attributes.flag("parameters"); }

void infer(InferContext& c) {
  const Value &dy = c.input(dy_input), &x = c.input(x_input), &gamma = c.input(gamma_input);
  c.require(
      x.shape.rank() >= 1 && dy.shape == x.shape,
      "dy is " + dy.shape.to_string() + " and x " + x.shape.to_string() + ", expected both [.., width]");
  c.require(is_computable(x.dtype) && is_computable(dy.dtype), "dy is " + std::string(name_of(dy.dtype)) +
                                                                   " and x " + std::string(name_of(x.dtype)) +
                                                                   ", expected f32 or f16");
  c.require(gamma.shape == Shape{x.shape[-1]} && gamma.dtype == DType::f32,
            "'" + gamma.name + "' is " + std::string(name_of(gamma.dtype)) + " " + gamma.shape.to_string() +
                ", expected f32 [" + std::to_string(x.shape[-1]) + "]");
  if (c.has_input(residual_input)) {
    const Value& residual = c.input(residual_input);
    c.require(residual.shape == x.shape && residual.dtype == x.dtype,
              "'" + residual.name + "' is " + std::string(name_of(residual.dtype)) + " " +
                  residual.shape.to_string() + ", expected " + std::string(name_of(x.dtype)) + " " +
                  x.shape.to_string() + " as of x");
  }
  c.output(x.shape, x.dtype);
  if (!wants_parameters(c.attributes())) return;
  c.output(gamma.shape, DType::f32, "gamma");
  c.output(gamma.shape, DType::f32, "beta");
}

double flops(const LowerContext& c) {
  return (wants_parameters(c.attributes()) ? 20.0 : 15.0) *
         static_cast<double>(c.input(x_input).shape.elements());
}

std::string variant(const LowerContext& c) {
  return storage_variant(c.input(x_input).dtype, c.input(dy_input).dtype);
}

// Gives the dispatch that works row by row, as each kernel makes it, its operands and parameters.
void finish_rows(const LowerContext& c, Dispatch& rows, std::initializer_list<Operand> sums) {
  const Shape& shape = c.input(x_input).shape;
  rows.operands = {Operand::input(dy_input), Operand::input(x_input), Operand::input(gamma_input),
                   c.has_input(residual_input) ? Operand::input(residual_input) : Operand::nothing(),
                   Operand::output(0)};
  rows.operands.insert(rows.operands.end(), sums);
  rows.set_params(shader::LayerNormParams{to_u32(shape.rows()), to_u32(shape[-1]),
                                          static_cast<float>(c.attributes().number("eps"))});
}

// All kernels read an element for the last time before the same invocation writes it; but with the
// parameters' gradients, dy is read again.
std::vector<std::pair<uint32_t, uint32_t>> in_place(const LowerContext& c) {
  std::vector<std::pair<uint32_t, uint32_t>> places;
  if (c.has_input(residual_input)) places.emplace_back(0, residual_input);
  if (!wants_parameters(c.attributes()) && c.input(dy_input).dtype == c.output(0).dtype)
    places.emplace_back(0, dy_input);
  return places;
}

// A dispatch that adds up every to-th of `from` rows, or of sums of rows.
Dispatch sums_dispatch(const LowerContext& c, std::string_view types, std::array<Operand, 5> operands,
                       uint64_t from, uint64_t to, bool of_sums) {
  const uint64_t width = c.input(x_input).shape[-1];
  Dispatch dispatch;
  dispatch.shader = &find_shader("layer_norm_gradient_sums", types);
  dispatch.constants = {
      {"local_size", workgroup_size(c.device(), 128)}, {"width", to_u32(width)}, {"of_sums", of_sums}};
  dispatch.operands.assign(operands.begin(), operands.end());
  dispatch.set_params(shader::LayerNormGradientSumsParams{to_u32(from * width), to_u32(to * width)});
  dispatch.groups = spread_groups(c.device(), ceil_div(to * width, dispatch.constant("local_size")));
  dispatch.note = std::to_string(from) + " rows to " + std::to_string(to);
  return dispatch;
}

constexpr Operand dgamma = Operand{Operand::Kind::output, 1}, dbeta = Operand{Operand::Kind::output, 2};

// What adds the sums that lie in two pieces of scratch.
Dispatch sum_of_sums(const LowerContext& c, Operand gamma_sums, Operand beta_sums, uint64_t rows) {
  return sums_dispatch(c, "f32", {beta_sums, gamma_sums, Operand::nothing(), dgamma, dbeta}, rows, 1, true);
}

// Why the kernels that leave the parameters' gradients to other dispatches can't.
std::optional<std::string> refuse_sums(const LowerContext& c) {
  if (!wants_parameters(c.attributes())) return std::nullopt;
  return refuse(c, "layer_norm_gradient_sums", variant(c));
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  if (auto reason = refuse_sums(c)) return reason;
  return refuse(c, "layer_norm_gradient", variant(c));
}

// Of these kernels, from their dispatch that works row by row.
Lowered with_sums(const LowerContext& c, Dispatch rows) {
  const Shape& shape = c.input(x_input).shape;
  const uint64_t width = shape[-1];
  const bool parameters = wants_parameters(c.attributes());
  const Operand statistics = parameters ? Operand::scratch(0) : Operand::nothing();
  rows.add_constants({{"keep_statistics", parameters},
                      {"has_residual", c.has_input(residual_input)},
                      {"rms", c.attributes().flag("rms")}});
  finish_rows(c, rows, {statistics});
  Lowered lowered{.in_place = in_place(c)};
  lowered.dispatches.push_back(std::move(rows));
  if (!parameters) return lowered;

  lowered.scratch = {shape.rows() * 2 * sizeof(float)};
  const Operand dy = Operand::input(dy_input), x = Operand::input(x_input);
  const uint64_t partial = partial_rows(shape.rows());
  if (partial == 1) {
    lowered.dispatches.push_back(
        sums_dispatch(c, variant(c), {dy, x, statistics, dgamma, dbeta}, shape.rows(), 1, false));
    return lowered;
  }
  lowered.scratch.insert(lowered.scratch.end(), 2, partial * width * sizeof(float));
  const Operand gamma_sums = Operand::scratch(1), beta_sums = Operand::scratch(2);
  lowered.dispatches.push_back(
      sums_dispatch(c, variant(c), {dy, x, statistics, gamma_sums, beta_sums}, shape.rows(), partial, false));
  lowered.dispatches.push_back(sum_of_sums(c, gamma_sums, beta_sums, partial));
  return lowered;
}

Lowered lower_simple(const LowerContext& c) {
  const Shape& shape = c.input(x_input).shape;
  Dispatch rows;
  rows.shader = &find_shader("layer_norm_gradient", variant(c));
  rows.constants = {{"local_size", row_workgroup_size(c.device(), shape[-1])}};
  rows.groups = spread_groups(c.device(), shape.rows());
  return with_sums(c, std::move(rows));
}

RowKeeping keeping(const LowerContext& c) {
  return {.width = c.input(x_input).shape[-1],
          .halves = c.input(x_input).dtype == DType::f16 && c.input(dy_input).dtype == DType::f16,
          .tensors = 4};  // x, dy, gamma, the residual
}

std::optional<std::string> refuse_subgroups(const LowerContext& c) {
  if (auto reason = refuse_sums(c)) return reason;
  return refuse_kept_rows(c, "layer_norm_gradient_subgroups", variant(c), keeping(c));
}

Lowered lower_subgroups(const LowerContext& c) {
  return with_sums(c, keep_rows(c.device(), "layer_norm_gradient_subgroups", variant(c), keeping(c),
                                c.input(x_input).shape.rows()));
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  if (wants_parameters(c.attributes())) {
    if (auto reason = c.missing("layer_norm_gradient_sums", "f32")) return reason;
  }
  return refuse_row_lanes(c, "layer_norm_gradient_cpu_lanes", variant(c), c.input(x_input).shape);
}

Lowered lower_lanes(const LowerContext& c) {
  // So many workgroups keep all cores busy; a workgroup's statistics, two numbers a row, are in shared
  // memory.
  constexpr uint64_t wanted_groups = 32, most_rows = 512;
  const Shape& shape = c.input(x_input).shape;
  const uint64_t width = shape[-1], threads = lanes_workgroup_size(c.device());
  const uint64_t rows_each = round_up(std::min(ceil_div(shape.rows(), wanted_groups), most_rows), threads);
  const uint64_t groups = ceil_div(shape.rows(), rows_each);
  const bool parameters = wants_parameters(c.attributes()), at_once = groups == 1;

  Operand gamma_sums, beta_sums;
  if (parameters) {
    gamma_sums = at_once ? dgamma : Operand::scratch(0);
    beta_sums = at_once ? dbeta : Operand::scratch(1);
  }
  Lowered lowered{.in_place = in_place(c)};
  Dispatch& rows = lowered.dispatches.emplace_back();
  finish_rows(c, rows, {gamma_sums, beta_sums});
  rows.shader = &find_shader("layer_norm_gradient_cpu_lanes", variant(c));
  rows.constants = {{"local_size", to_u32(threads)},
                    {"width", to_u32(width)},
                    {"sum_parameters", parameters},
                    {"rows_each", to_u32(rows_each)},
                    {"has_residual", c.has_input(residual_input)},
                    {"rms", c.attributes().flag("rms")}};
  rows.groups = {to_u32(groups), 1, 1};
  rows.note = std::to_string(rows_each) + " rows each";
  if (!parameters || at_once) return lowered;
  lowered.scratch.assign(2, groups * width * sizeof(float));
  lowered.dispatches.push_back(sum_of_sums(c, gamma_sums, beta_sums, groups));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"subgroups", Target::any, refuse_subgroups, prefer_on_gpu, lower_subgroups},
                                 {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes}};

}  // namespace

const OpDef op_layer_norm_gradient{"layer_norm_gradient", infer, flops, kernels, layer_norm_gradient_cases};

LayerNormGradients layer_norm_gradient(Graph& graph, const std::string& name, ValueId dy, ValueId x,
                                       ValueId gamma, double eps, bool parameters, ValueId residual,
                                       bool rms) {
  Attributes attributes{{"eps", eps}, {"parameters", static_cast<int64_t>(parameters)}};
  if (rms) attributes.set("rms", int64_t{1});
  const auto found = graph.add(op_layer_norm_gradient, name, {dy, x, gamma, residual}, std::move(attributes));
  if (!parameters) return {found[0], {}, {}};
  return {found[0], found[1], found[2]};
}

}  // namespace vitrine
