// A token sequence written in plain operators: tokens repeated for every image, concatenated with the
// patches, and positions added to all of them, or to the patches alone.
#include <array>
#include <vector>

#include "runtime/graph/fusion.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/moves/concat.h"
#include "runtime/ops/moves/copy_runs.h"
#include "runtime/ops/moves/repeat.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/tokens/assemble_tokens.h"
#include "shaders/elementwise/binary.h"

namespace vitrine {
namespace {

using namespace token_places;

bool holds(const Node& node) {
  if (node.op != &op_assemble_tokens) return false;
  for (size_t i = class_input; i < input_count; ++i) {
    if (node.inputs.at(i)) return true;
  }
  return false;
}
bool holds_nothing(const Node&) { return false; }

std::optional<Fused> take_tokens(const FusionContext& context) {
  const Node& node = context.node();
  if (node.op != &op_concat || node.inputs.size() < 2 || context.output().dtype != DType::f32 ||
      context.output().shape.rank() != 3 ||
      resolve_axis(context.output().shape, node.attributes.integer("axis")) != 1) {
    return std::nullopt;
  }
  Fused fused;
  fused.node.op = &op_assemble_tokens;
  fused.node.name = node.name;
  fused.node.attributes.set("out", static_cast<int64_t>(DType::f32));
  fused.node.inputs.resize(input_count);
  fused.node.inputs[patches_input] = node.inputs.back();
  // Each takes the next free place that suits it; the order of the places is that of the sequence.
  size_t free = class_input;
  for (size_t i = 0; i + 1 < node.inputs.size(); ++i) {
    const Node* repeated = context.absorbable(node.inputs[i], op_repeat);
    if (!repeated) return std::nullopt;
    const ValueId token = repeated->inputs[0];
    if (context.value(token).shape.rank() == 2 && free < registers_input) free = registers_input;
    if (free > registers_input || (free == registers_input && context.value(token).shape.rank() != 2))
      return std::nullopt;
    fused.node.inputs[free++] = token;
    fused.absorbed.push_back(repeated);
  }
  return fused;
}

bool is_sum(const Node& node) {
  return node.op == &op_binary && node.attributes.integer("function") == VITRINE_BINARY_ADD;
}

// Positions of all tokens, added behind.
std::optional<Fused> take_positions(const FusionContext& context) {
  const Node& node = context.node();
  if (!is_sum(node)) return std::nullopt;
  const Node* tokens = context.absorbable(node.inputs[0], op_assemble_tokens);
  const Value& positions = context.input(1);
  const Shape& shape = context.output().shape;
  if (!tokens || tokens->inputs[positions_input] || positions.dtype != DType::f32 ||
      context.input(0).dtype != DType::f32 || positions.shape != Shape{shape[1], shape[2]}) {
    return std::nullopt;
  }
  Fused fused{.node = *tokens, .absorbed = {tokens}};
  fused.node.inputs[positions_input] = node.inputs[1];
  return fused;
}

// Positions of the patches, added in front.
std::optional<Fused> take_patch_positions(const FusionContext& context) {
  const Node& node = context.node();
  if (node.op != &op_assemble_tokens || node.inputs[positions_input]) return std::nullopt;
  const Node* sum = context.absorbable(node.inputs[patches_input], op_binary);
  if (!sum || !is_sum(*sum)) return std::nullopt;
  const Value& patches = context.value(sum->inputs[0]);
  const Value& positions = context.value(sum->inputs[1]);
  if (context.input(patches_input).dtype != DType::f32 || positions.dtype != DType::f32 ||
      positions.shape != Shape{patches.shape[1], patches.shape[2]}) {
    return std::nullopt;
  }
  Fused fused{.node = node, .absorbed = {sum}};
  fused.node.inputs[patches_input] = sum->inputs[0];
  fused.node.inputs[positions_input] = sum->inputs[1];
  return fused;
}

ValueId split(Graph& graph, const Node& node) {
  const ValueId positions = node.inputs[positions_input];
  ValueId patches = convert(graph, node.name + ".patches", node.inputs[patches_input], DType::f32);
  const Shape shape = graph.value(patches).shape;
  std::vector<ValueId> parts;
  uint64_t tokens = shape[1];
  for (size_t i = class_input; i <= registers_input; ++i) {
    static constexpr std::array names{"", ".class", ".distillation", ".registers"};
    if (!node.inputs[i]) continue;
    parts.push_back(repeat_tokens(graph, node.name + names[i], node.inputs[i], shape[0]));
    tokens += graph.value(parts.back()).shape[1];
  }
  const uint64_t rows = positions ? graph.value(positions).shape[0] : 0;
  const bool for_all = positions && rows == tokens;
  if (positions && !for_all) {
    // One row for each class and distillation token where there are more rows than patches.
    const uint64_t first = rows - shape[1];
    const auto add_rows = [&](const std::string& name, ValueId to, uint64_t begin, uint64_t end) {
      const ValueId some =
          end - begin == rows ? positions : slice(graph, name + ".rows", positions, 0, begin, end);
      return add(graph, name, to, some);
    };
    for (uint64_t i = 0; i < first; ++i)
      parts[i] = add_rows(node.name + ".position" + std::to_string(i), parts[i], i, i + 1);
    patches = add_rows(node.name + ".positions", patches, first, rows);
  }
  parts.push_back(patches);
  ValueId y = parts.size() == 1 ? patches : concat(graph, node.name, parts, 1);
  if (for_all) y = add(graph, node.name + ".positions", y, positions);
  return convert(graph, node.name + ".convert", y, static_cast<DType>(node.attributes.integer("out")));
}

constexpr std::string_view name = "tokens";

}  // namespace

extern const FusionRule fuse_tokens{name, "tokens repeated and concatenated", holds, take_tokens, split,
                                    true};
extern const FusionRule fuse_token_positions{
    name, "positions added to all tokens", holds_nothing, take_positions, nullptr, true};
extern const FusionRule fuse_patch_positions{
    name, "positions added to the patches", holds_nothing, take_patch_positions, nullptr, true};

}  // namespace vitrine
