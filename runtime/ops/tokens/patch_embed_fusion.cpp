// The bias behind a patch embedding.
#include "runtime/graph/fusion.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "shaders/elementwise/binary.h"

namespace vitrine {
namespace {

constexpr size_t bias_input = 2;

bool holds(const Node& node) { return node.op == &op_patch_embed && bool(node.inputs.at(bias_input)); }

std::optional<Fused> take(const FusionContext& context) {
  const Node& node = context.node();
  if (node.op != &op_binary || node.attributes.integer("function") != VITRINE_BINARY_ADD) return std::nullopt;
  const Node* patches = context.absorbable(node.inputs[0], op_patch_embed);
  const Value& row = context.input(1);
  if (!patches || holds(*patches) || row.dtype != DType::f32 ||
      row.shape != Shape{context.output().shape[-1]})
    return std::nullopt;
  Fused fused{.node = *patches, .absorbed = {patches}};
  fused.node.inputs[bias_input] = node.inputs[1];
  fused.node.attributes.set("out", static_cast<int64_t>(context.output().dtype));
  return fused;
}

ValueId split(Graph& graph, const Node& node) {
  Node bare = node;
  bare.inputs[bias_input] = {};
  bare.attributes.set("out", static_cast<int64_t>(DType::f32));
  const ValueId y = graph.add(*bare.op, bare.name, bare.inputs, bare.attributes)[0];
  return convert(graph, node.name + ".convert", add(graph, node.name + ".bias", y, node.inputs[bias_input]),
                 static_cast<DType>(node.attributes.integer("out")));
}

}  // namespace

extern const FusionRule fuse_patch_embed_bias{
    "bias", "a row added behind a patch embedding", holds, take, split, true};

}  // namespace vitrine
