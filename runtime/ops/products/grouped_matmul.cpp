#include "runtime/ops/products/grouped_matmul.h"

#include <algorithm>
#include <array>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/products/weight_gradient.h"
#include "shaders/products/grouped_matmul.h"

namespace vitrine {
namespace {

constexpr uint32_t input_x = 0, input_weight = 1, input_bias = 2;
constexpr uint32_t rows_each = 4;

struct Sizes {
  uint64_t groups = 0, slices = 0;  // of the result, and of x
  uint64_t n = 0, k = 0;            // outputs of a group for inputs of a slice
  uint64_t sets = 1;                // groups of the weight for each slice, or, turned, for each group
};
Sizes sizes_of(const Shape& weight, uint64_t width, const Attributes& attributes) {
  const bool turned = attributes.flag("turned");
  Sizes sizes{.n = weight[turned ? 2 : 1], .k = weight[turned ? 1 : 2]};
  sizes.slices = width / sizes.k;
  sizes.sets = turned ? static_cast<uint64_t>(attributes.integer("sets"))
                      : weight[0] / std::max<uint64_t>(sizes.slices, 1);
  sizes.groups = turned ? weight[0] / sizes.sets : weight[0];
  return sizes;
}
Sizes sizes_of(const LowerContext& c) {
  return sizes_of(c.input(input_weight).shape, c.input(input_x).shape[-1], c.attributes());
}

void infer(InferContext& c) {
  const Value& x = c.input(input_x);
  const Value& weight = c.input(input_weight);
  c.require(is_computable(x.dtype) && weight.dtype == x.dtype,
            "x is " + std::string(name_of(x.dtype)) + " and the weight " +
                std::string(name_of(weight.dtype)) + ", both f32 or both f16 were expected");
  c.require(weight.shape.rank() == 3,
            "the weight is " + weight.shape.to_string() + ", [G, N, K] was expected");
  const bool turned = c.attributes().flag("turned");
  c.require(x.shape.rank() >= 1, "x is a scalar, [.., width] was expected");
  const Sizes sizes = sizes_of(weight.shape, x.shape[-1], c.attributes());
  const uint64_t groups = sizes.groups, n = sizes.n;
  c.require(x.shape[-1] == sizes.slices * sizes.k && sizes.slices > 0 && sizes.sets > 0 &&
                (turned ? sizes.slices == weight.shape[0] && groups * sizes.sets == weight.shape[0]
                        : sizes.sets * sizes.slices == weight.shape[0]),
            "x is " + x.shape.to_string() + " and the weight " + weight.shape.to_string() +
                (turned ? ", [.., G*N]" : ", [.., G*K] or a part of that") + " and [G, N, K] were expected");
  if (c.has_input(input_bias)) {
    const Value& bias = c.input(input_bias);
    c.require(bias.dtype == DType::f32 && bias.shape == Shape{groups, n},
              "the bias is " + std::string(name_of(bias.dtype)) + " " + bias.shape.to_string() + ", f32 " +
                  Shape{groups, n}.to_string() + " was expected");
  }
  std::vector<uint64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims.back() = groups * n;
  c.output(Shape{std::span<const uint64_t>(dims)}, x.dtype);
}

double flops(const LowerContext& c) {
  const Shape& weight = c.input(input_weight).shape;
  return 2.0 * static_cast<double>(c.input(input_x).shape.rows()) * static_cast<double>(weight.elements());
}

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "grouped_matmul", name_of(c.input(input_x).dtype));
}

Lowered lower(const LowerContext& c) {
  const Sizes sizes = sizes_of(c);
  const uint64_t rows = c.input(input_x).shape.rows();
  const uint64_t jobs = ceil_div(rows, rows_each) * sizes.groups * sizes.n;
  const uint32_t local_size = workgroup_size(c.device(), 64);

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("grouped_matmul", name_of(c.input(input_x).dtype));
  dispatch.constants = {{"local_size", local_size},
                        {"rows_each", rows_each},
                        {"has_bias", c.has_input(input_bias)},
                        {"turned", c.attributes().flag("turned")},
                        {"sets", to_u32(sizes.sets)}};
  dispatch.operands = {Operand::input(input_x), Operand::input(input_weight),
                       c.has_input(input_bias) ? Operand::input(input_bias) : Operand::nothing(),
                       Operand::output(0)};
  dispatch.set_params(shader::GroupedMatmulParams{.rows = to_u32(rows),
                                                  .groups = to_u32(sizes.groups),
                                                  .n = to_u32(sizes.n),
                                                  .k = to_u32(sizes.k),
                                                  .jobs = to_u32(jobs)});
  dispatch.groups = spread_groups(c.device(), ceil_div(jobs, local_size));
  return lowered;
}

void backward(GradContext& c) {
  if (c.input_value(input_x).dtype != DType::f32) c.refuse("only f32 has a derivative");
  if (c.attributes().flag("turned")) c.refuse("its derivative has none of its own");
  const ValueId dy = c.gradient(0);
  const Shape weight = c.input_value(input_weight).shape;
  const uint64_t sets = sizes_of(weight, c.input_value(input_x).shape[-1], c.attributes()).sets;
  if (c.wants(input_weight) || c.wants(input_bias)) {
    const WeightGradient found =
        weight_gradient(c.graph(), c.name("weight"), dy, c.input(input_x),
                        {.groups = weight[0], .sets = sets, .bias = c.wants(input_bias)});
    c.add(input_weight, found.weight);
    if (found.bias) c.add(input_bias, found.bias);
  }
  if (c.wants(input_x))
    c.add(input_x, grouped_matmul_turned(c.graph(), c.name("x"), dy, c.input(input_weight), sets));
}

// A row stays in registers, and its code is unrolled.
constexpr uint64_t most_depth = 64, most_weights = 4096;

std::optional<std::string> refuses_rows(const LowerContext& c) {
  if (c.input(input_x).dtype != DType::f32) return "x is f16, it only reads f32";
  if (auto reason = refuse(c, "grouped_matmul_cpu_rows", "f32")) return reason;
  const Sizes sizes = sizes_of(c);
  if (sizes.n % 2 != 0 || sizes.k % 2 != 0) {
    return "groups of " + std::to_string(sizes.n) + " x " + std::to_string(sizes.k) +
           " can't be moved by twos";
  }
  if (sizes.k > most_depth || c.input(input_weight).shape.elements() > most_weights) {
    return "weights of " + c.input(input_weight).shape.to_string() + " are too large for one lane a row";
  }
  for (const Value* value : {&c.input(input_x), &c.output(0)}) {
    if (auto reason = refuse_half_word(*value)) return reason;
  }
  return refuse_row_groups(c, c.input(input_x).shape.rows());
}

Lowered lower_rows(const LowerContext& c) {
  const Sizes sizes = sizes_of(c);
  Lowered lowered = lower(c);
  Dispatch& dispatch = lowered.dispatches.front();
  const uint64_t rows = c.input(input_x).shape.rows();
  const uint32_t threads = row_lanes_workgroup_size(c.device(), rows);
  dispatch.shader = &find_shader("grouped_matmul_cpu_rows", "f32");
  constexpr uint64_t most_straight = 1024;  // multiply-adds of a row
  const uint64_t products =
      sizes.groups * sizes.n * sizes.k * (c.attributes().flag("turned") ? sizes.sets : 1);
  dispatch.constants = {{"local_size", threads},
                        {"groups", to_u32(sizes.groups)},
                        {"outputs", to_u32(sizes.n)},
                        {"depth", to_u32(sizes.k)},
                        {"has_bias", c.has_input(input_bias)},
                        {"turned", c.attributes().flag("turned")},
                        {"sets", to_u32(sizes.sets)},
                        {"straight", c.device().loops_gather && products <= most_straight}};
  dispatch.groups = {to_u32(ceil_div(rows, threads)), 1, 1};
  return lowered;
}

constexpr std::array kernels{KernelDef{"columns", Target::any, refuses, no_preference, lower},
                             KernelDef{"cpu_rows", Target::cpu, refuses_rows, prefer_on_cpu, lower_rows}};

}  // namespace

const OpDef op_grouped_matmul{"grouped_matmul", infer, flops, kernels, grouped_matmul_cases, backward};

ValueId grouped_matmul(Graph& graph, std::string name, ValueId x, ValueId weight, ValueId bias) {
  return graph.add(op_grouped_matmul, std::move(name), {x, weight, bias})[0];
}

ValueId grouped_matmul_turned(Graph& graph, std::string name, ValueId x, ValueId weight, uint64_t sets) {
  return graph.add(op_grouped_matmul, std::move(name), {x, weight, {}},
                   {{"turned", int64_t{1}}, {"sets", static_cast<int64_t>(sets)}})[0];
}

}  // namespace vitrine
