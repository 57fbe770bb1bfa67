// Matrix products that read an operand column by column, so that nothing has to turn it first: the two
// products of a linear layer's backward pass, dy W and dy^T x.
#include "runtime/graph/fusion.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {
namespace {

constexpr const char* attribute_of(uint32_t input) {
  return input == matmul_input::x ? "transposed_x" : "transposed_weight";
}

bool holds(const Node& node) {
  return node.op == &op_matmul && (is_x_transposed(node) || is_weight_transposed(node));
}

std::optional<Fused> take(const FusionContext& context) {
  const Node& product = context.node();
  if (product.op != &op_matmul) return std::nullopt;
  for (const uint32_t input : {matmul_input::x, matmul_input::weight}) {
    // The kernels that multiply f16 on matrix units are worth a pass over an operand.
    if (context.input(input).dtype != DType::f32 || product.attributes.flag(attribute_of(input))) continue;
    // A transposed x has lost its leading dimensions.
    if (input == matmul_input::x && context.output().shape.rank() != 2) continue;
    const Node* turned = context.absorbable(product.inputs[input], op_transpose);
    if (!turned) continue;
    const bool is_one_matrix =
        turned->attributes.flag("flat") || context.value(turned->inputs[0]).shape.rank() == 2;
    if (!is_one_matrix) continue;
    Fused fused{.node = product, .absorbed = {turned}};
    fused.node.inputs[input] = turned->inputs[0];
    fused.node.attributes.set(attribute_of(input), int64_t{1});
    return fused;
  }
  return std::nullopt;
}

ValueId split(Graph& graph, const Node& node) {
  std::vector<ValueId> inputs = node.inputs;
  Attributes attributes;
  for (const auto& [name, setting] : node.attributes.all()) {
    if (name != attribute_of(matmul_input::x) && name != attribute_of(matmul_input::weight))
      attributes.set(name, setting);
  }
  for (const uint32_t input : {matmul_input::x, matmul_input::weight}) {
    if (!node.attributes.flag(attribute_of(input))) continue;
    const char* suffix = input == matmul_input::x ? ".x" : ".weight";
    inputs[input] = transpose_rows(graph, node.name + suffix, inputs[input]);
  }
  return graph.add(op_matmul, node.name, std::move(inputs), std::move(attributes))[0];
}

}  // namespace

extern const FusionRule fuse_matmul_transposed{
    "transposed", "turning an operand in front of a matrix product", holds, take, split};

}  // namespace vitrine
