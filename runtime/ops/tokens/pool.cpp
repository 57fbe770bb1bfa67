#include "runtime/ops/tokens/pool.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "shaders/tokens/pool.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& tokens = c.input(0);
  c.require(tokens.shape.rank() == 3 && is_computable(tokens.dtype),
            "the tokens are " + std::string(name_of(tokens.dtype)) + " " + tokens.shape.to_string() +
                ", expected f32 or f16 [images, tokens, dims]");
  const auto first = static_cast<uint64_t>(c.attributes().integer("first"));
  const auto count = static_cast<uint64_t>(c.attributes().integer("count"));
  const uint64_t all = tokens.shape[1];
  c.require(count > 0 && count <= all && first <= all - count,
            std::to_string(count) + " tokens from number " + std::to_string(first) +
                " on were asked for, of " + std::to_string(all));
  c.output({tokens.shape[0], tokens.shape[2]}, tokens.dtype);
}

double flops(const LowerContext& c) {
  return c.attributes().number("count") * static_cast<double>(c.output(0).shape.elements());
}

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "pool", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const Shape& tokens = c.input(0).shape;
  const uint64_t count = c.output(0).shape.elements();
  Dispatch dispatch;
  dispatch.shader = &find_shader("pool", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 64)}, {"dims", to_u32(tokens[2])}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::PoolParams{to_u32(count), to_u32(tokens[1]),
                                         to_u32(static_cast<uint64_t>(c.attributes().integer("first"))),
                                         to_u32(static_cast<uint64_t>(c.attributes().integer("count")))});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

void backward(GradContext& c) {
  const Value& tokens = c.input_value(0);
  if (tokens.dtype != DType::f32) c.refuse("only tokens in f32 have a derivative");
  c.add(0, pool_gradient(c.graph(), c.name("tokens"), c.gradient(0), tokens.shape[1],
                         static_cast<uint64_t>(c.attributes().integer("first")),
                         static_cast<uint64_t>(c.attributes().integer("count"))));
}

// ---- the gradient ----------------------------------------------------------------------------------

void infer_gradient(InferContext& c) {
  const Value& gradient = c.input(0);
  c.require(gradient.shape.rank() == 2 && gradient.dtype == DType::f32,
            "the gradient is " + std::string(name_of(gradient.dtype)) + " " + gradient.shape.to_string() +
                ", expected f32 [images, dims]");
  const auto tokens = static_cast<uint64_t>(c.attributes().integer("tokens"));
  const auto first = static_cast<uint64_t>(c.attributes().integer("first"));
  const auto count = static_cast<uint64_t>(c.attributes().integer("count"));
  c.require(count > 0 && count <= tokens && first <= tokens - count,
            std::to_string(count) + " tokens from number " + std::to_string(first) + " on were pooled, of " +
                std::to_string(tokens));
  c.output({gradient.shape[0], tokens, gradient.shape[1]}, DType::f32);
}

double gradient_flops(const LowerContext& c) { return static_cast<double>(c.input(0).shape.elements()); }

std::optional<std::string> refuses_gradient(const LowerContext& c) {
  return refuse(c, "pool_gradient", "f32");
}

Lowered lower_gradient(const LowerContext& c) {
  const Shape& tokens = c.output(0).shape;
  const uint64_t count = tokens.elements();
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("pool_gradient", "f32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"dims", to_u32(tokens[2])},
                        {"tokens", to_u32(tokens[1])}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::PoolParams{to_u32(count), to_u32(tokens[1]),
                                         to_u32(static_cast<uint64_t>(c.attributes().integer("first"))),
                                         to_u32(static_cast<uint64_t>(c.attributes().integer("count")))});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  return lowered;
}

constexpr KernelDef gradient_kernels[] = {
    {"simple", Target::any, refuses_gradient, no_preference, lower_gradient}};

}  // namespace

const OpDef op_pool{"pool", infer, flops, kernels, pool_cases, backward};
const OpDef op_pool_gradient{"pool_gradient", infer_gradient, gradient_flops, gradient_kernels,
                             pool_gradient_cases};

ValueId pool_token(Graph& graph, std::string name, ValueId tokens, uint64_t index) {
  return pool_mean(graph, std::move(name), tokens, index, 1);
}

ValueId pool_mean(Graph& graph, std::string name, ValueId tokens, uint64_t first, uint64_t count) {
  return graph.add(op_pool, std::move(name), {tokens},
                   {{"first", static_cast<int64_t>(first)}, {"count", static_cast<int64_t>(count)}})[0];
}

ValueId pool_gradient(Graph& graph, std::string name, ValueId gradient, uint64_t tokens, uint64_t first,
                      uint64_t count) {
  return graph.add(op_pool_gradient, std::move(name), {gradient},
                   {{"tokens", static_cast<int64_t>(tokens)},
                    {"first", static_cast<int64_t>(first)},
                    {"count", static_cast<int64_t>(count)}})[0];
}

}  // namespace vitrine
