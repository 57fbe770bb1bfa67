// Operators that can store f16 take over a conversion to it. All of them compute in f32 and round once, as
// the conversion does, so the bits stay the same. A conversion back to f32 is left alone: without the
// rounding between, the numbers would be others.
#include "runtime/graph/fusion.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/tokens/assemble_tokens.h"
#include "runtime/ops/tokens/patch_embed.h"

namespace vitrine {
namespace {

DType out_of(const Node& node) { return static_cast<DType>(node.attributes.integer("out")); }

void set_out(Node& node, DType out) { node.attributes.set("out", static_cast<int64_t>(out)); }

template <const OpDef& op>
bool holds(const Node& node) {
  return node.op == &op && out_of(node) == DType::f16;
}

template <const OpDef& op>
std::optional<Fused> take(const FusionContext& context) {
  if (context.node().op != &op_convert || context.output().dtype != DType::f16) return std::nullopt;
  const Node* producer = context.absorbable(context.node().inputs[0], op);
  if (!producer || out_of(*producer) != DType::f32) return std::nullopt;
  // A product of f32 has no kernel that stores f16.
  const bool is_product = &op == &op_matmul;
  if (is_product && context.value(producer->inputs[0]).dtype != DType::f16) return std::nullopt;
  Fused fused{.node = *producer, .absorbed = {producer}};
  set_out(fused.node, DType::f16);
  return fused;
}

ValueId split(Graph& graph, const Node& node) {
  Node wide = node;
  set_out(wide, DType::f32);
  const ValueId y = graph.add(*wide.op, wide.name, wide.inputs, wide.attributes)[0];
  return convert(graph, node.name + ".convert", y, DType::f16);
}

constexpr std::string_view name = "conversion";
constexpr std::string_view what = "rounding to f16 behind what computes it in f32";

}  // namespace

extern const FusionRule fuse_matmul_conversion{name, what, holds<op_matmul>, take<op_matmul>, split};
extern const FusionRule fuse_layer_norm_conversion{name, what, holds<op_layer_norm>, take<op_layer_norm>,
                                                   split};
extern const FusionRule fuse_patch_embed_conversion{name, what, holds<op_patch_embed>, take<op_patch_embed>,
                                                    split};
extern const FusionRule fuse_tokens_conversion{name, what, holds<op_assemble_tokens>,
                                               take<op_assemble_tokens>, split};

}  // namespace vitrine
