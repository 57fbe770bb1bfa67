// What a matrix product takes over of the operators behind it, in the order in which its epilogue works
// (shaders/lib/epilogue.glsl): + bias, activation, * scale, + residual.
#include <array>

#include "runtime/graph/fusion.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "shaders/elementwise/binary.h"

namespace vitrine {
namespace {

// The epilogue's parts. A product that has one can't take over an earlier one any more.
enum class Part : uint8_t { bias, activation, scale, residual };

Activation activation_of(const Node& node) {
  return static_cast<Activation>(node.attributes.integer("activation"));
}

template <Part part>
bool holds(const Node& node) {
  if (node.op != &op_matmul) return false;
  const auto has = [&](uint32_t input) { return bool(node.inputs.at(input)); };
  switch (part) {
    case Part::bias:
      return has(matmul_input::bias);
    case Part::activation:
      return activation_of(node) != Activation::none;
    case Part::scale:
      return has(matmul_input::scale);
    case Part::residual:
      return has(matmul_input::residual);
  }
  return false;
}

bool is_free_from(Part part, const Node& node) {
  const std::array held{holds<Part::bias>(node), holds<Part::activation>(node), holds<Part::scale>(node),
                        holds<Part::residual>(node)};
  for (auto at = static_cast<size_t>(part); at < held.size(); ++at) {
    if (held[at]) return false;
  }
  return true;
}

bool is_binary(const Node& node, int64_t function) {
  return node.op == &op_binary && node.attributes.integer("function") == function;
}

Fused into(const Node& product, const FusionContext& context) {
  Fused fused{.node = product, .absorbed = {&product}};
  fused.node.attributes.set("out", static_cast<int64_t>(context.output().dtype));
  return fused;
}

// A row, or what has the product's own shape, that is added or multiplied.
std::optional<Fused> take_operand(const FusionContext& context, Part part, int64_t function,
                                  uint32_t target) {
  const Node& node = context.node();
  if (!is_binary(node, function)) return std::nullopt;
  const Node* found = nullptr;
  ValueId other;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const Node* product = context.absorbable(node.inputs[i], op_matmul);
    if (!product || !is_free_from(part, *product)) continue;
    const Value& operand = context.input(1 - i);
    const Shape& shape = context.output().shape;
    const bool fits = part == Part::residual ? operand.shape == shape : operand.shape == Shape{shape[-1]};
    if (!fits || operand.dtype != DType::f32 || context.input(i).shape != shape) continue;
    // Of two products the later one: the other's result is there by then.
    if (found && !context.is_later(*product, *found)) continue;
    found = product;
    other = node.inputs[1 - i];
  }
  if (!found) return std::nullopt;
  Fused fused = into(*found, context);
  fused.node.inputs[target] = other;
  return fused;
}

std::optional<Fused> take_bias(const FusionContext& context) {
  return take_operand(context, Part::bias, VITRINE_BINARY_ADD, matmul_input::bias);
}
std::optional<Fused> take_scale(const FusionContext& context) {
  return take_operand(context, Part::scale, VITRINE_BINARY_MULTIPLY, matmul_input::scale);
}
std::optional<Fused> take_residual(const FusionContext& context) {
  return take_operand(context, Part::residual, VITRINE_BINARY_ADD, matmul_input::residual);
}

std::optional<Fused> take_activation(const FusionContext& context) {
  const Node& node = context.node();
  if (node.op != &op_unary) return std::nullopt;
  const int64_t function = node.attributes.integer("function");
  if (function >= VITRINE_ACTIVATION_COUNT) return std::nullopt;
  const Node* product = context.absorbable(node.inputs[0], op_matmul);
  if (!product || !is_free_from(Part::activation, *product)) return std::nullopt;
  Fused fused = into(*product, context);
  fused.node.attributes.set("activation", function);
  return fused;
}

// The product with the parts before `from`, and a node for each of the others.
template <Part from>
ValueId split(Graph& graph, const Node& node) {
  const auto keeps = [](Part part) { return part < from; };
  const ValueId bias = node.inputs[matmul_input::bias], scale = node.inputs[matmul_input::scale],
                residual = node.inputs[matmul_input::residual];
  const Activation activation = activation_of(node);
  const Activation kept = keeps(Part::activation) ? activation : Activation::none;
  Node product = node;
  product.attributes.set("activation", static_cast<int64_t>(kept));
  product.attributes.set("out", static_cast<int64_t>(DType::f32));
  if (!keeps(Part::bias)) product.inputs[matmul_input::bias] = {};
  if (!keeps(Part::scale)) product.inputs[matmul_input::scale] = {};
  product.inputs[matmul_input::residual] = {};
  ValueId y = graph.add(op_matmul, product.name, product.inputs, product.attributes)[0];
  if (!keeps(Part::bias) && bias) y = add(graph, node.name + ".bias", y, bias);
  if (activation != kept) y = activate(graph, node.name + ".activation", y, activation);
  if (!keeps(Part::scale) && scale) y = multiply(graph, node.name + ".scale", y, scale);
  if (residual) y = add(graph, node.name + ".residual", y, residual);
  return convert(graph, node.name + ".convert", y, static_cast<DType>(node.attributes.integer("out")));
}

}  // namespace

extern const FusionRule fuse_matmul_bias{
    "bias", "a row added behind a matrix product", holds<Part::bias>, take_bias, split<Part::bias>, true};
extern const FusionRule fuse_matmul_activation{"activation", "an activation behind a matrix product",
                                               holds<Part::activation>, take_activation,
                                               split<Part::activation>};
extern const FusionRule fuse_matmul_scale{"layer_scale", "a row multiplied behind a matrix product",
                                          holds<Part::scale>, take_scale, split<Part::scale>};
extern const FusionRule fuse_matmul_residual{"residual", "a tensor added behind a matrix product",
                                             holds<Part::residual>, take_residual, split<Part::residual>};

}  // namespace vitrine
