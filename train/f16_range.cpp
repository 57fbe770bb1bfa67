#include "train/f16_range.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/ops/attention/attention.h"
#include "runtime/ops/elementwise/magnitude.h"
#include "runtime/ops/moves/concat.h"

namespace vitrine {
namespace {

// How many of a rounded node's inputs are multiplied: q, k and v, or both sides of a product.
size_t operands_of(const Node& node) { return node.op == &op_attention ? 3 : 2; }

}  // namespace

F16RangeGraph make_f16_range_graph(const TrainConfig& config, const ParameterLayout& layout,
                                   const StepGraphOptions& options) {
  std::set<std::string, std::less<>> rounded;
  const Graph in_f16 = make_forward_graph(config, layout, options, true);
  for (const Node& node : in_f16.nodes()) {
    if (node.attributes.flag("rounded")) rounded.insert(node.name);
  }
  const Graph source = make_forward_graph(config, layout, options, false);
  const auto graph = std::make_shared<Graph>();
  F16RangeGraph result{.graph = graph};
  std::vector<ValueId> copies(source.values().size()), magnitudes;
  for (uint32_t i = 0; i < copies.size(); ++i) {
    const Value& value = source.values()[i];
    if (value.role == Role::input) copies[i] = graph->input(value.name, value.shape, value.dtype);
    if (value.role == Role::constant) copies[i] = graph->constant(value.name, value.shape, value.dtype);
    if (value.role == Role::state)
      copies[i] = graph->state(value.name, value.shape, value.place, value.dtype);
  }
  std::set<ValueId> looked_at;
  for (const Node& node : source.nodes()) {
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(id ? copies[id.index] : ValueId{});
    // In front of the product, so that no memory is kept for it.
    for (size_t i = 0; rounded.contains(node.name) && i < std::min(operands_of(node), inputs.size()); ++i) {
      if (!inputs[i] || !looked_at.insert(inputs[i]).second) continue;
      magnitudes.push_back(magnitude(*graph, node.name + ".magnitude." + std::to_string(i), inputs[i]));
      result.products.push_back(node.name);
    }
    const std::vector<ValueId> outputs = graph->add(*node.op, node.name, std::move(inputs), node.attributes);
    for (size_t k = 0; k < outputs.size(); ++k) copies[node.outputs[k].index] = outputs[k];
  }
  for (const ValueId id : source.with_role(Role::output))
    graph->output(copies[id.index], source.value(id).name);
  if (!magnitudes.empty()) {
    const std::string name(magnitudes_output);
    graph->output(concat(*graph, name, magnitudes, 0), name);
  }
  return result;
}

}  // namespace vitrine
