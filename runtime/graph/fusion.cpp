#include "runtime/graph/fusion.h"

#include <algorithm>
#include <utility>

#include "runtime/graph/op.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// Copies what can't be rewritten, values that no node computes, and says where each value went.
std::vector<ValueId> copy_sources(const Graph& from, Graph& to) {
  std::vector<ValueId> copies(from.values().size());
  std::vector<bool> computed(copies.size());
  for (const Node& node : from.nodes()) {
    for (const ValueId id : node.outputs) computed[id.index] = true;
  }
  for (uint32_t i = 0; i < copies.size(); ++i) {
    if (computed[i]) continue;
    const Value& value = from.values()[i];
    if (value.role == Role::input) copies[i] = to.input(value.name, value.shape, value.dtype);
    if (value.role == Role::constant) copies[i] = to.constant(value.name, value.shape, value.dtype);
    if (value.role == Role::state) copies[i] = to.state(value.name, value.shape, value.place, value.dtype);
  }
  return copies;
}

void copy_outputs(const Graph& from, Graph& to, std::span<const ValueId> copies) {
  for (const ValueId id : from.with_role(Role::output)) to.output(copies[id.index], from.value(id).name);
  for (const ValueId id : from.with_role(Role::state)) {
    const ValueId copy = copies[id.index];
    if (to.value(copy).role == Role::intermediate) to.store(copy, from.value(id).place);
  }
}

// The node with its inputs' copies instead of its inputs.
Node with_copies(Node node, std::span<const ValueId> copies) {
  for (ValueId& id : node.inputs) {
    if (id) id = copies[id.index];
  }
  return node;
}

// A rule may change how a value is computed, and nothing about the value.
void require_same(const Value& now, const Value& before, std::string_view node) {
  if (now.shape == before.shape && now.dtype == before.dtype) return;
  throw Error(ErrorCode::failed, "a fusion rule made " + std::string(name_of(now.dtype)) + " " +
                                     now.shape.to_string() + " of '" + std::string(node) + "', expected " +
                                     std::string(name_of(before.dtype)) + " " + before.shape.to_string());
}

const FusionRule* rule_to_split(const Node& node, const FusionSet& rules) {
  for (const FusionRule* rule : all_fusion_rules()) {
    if (!rules.contains(rule->name) && rule->holds(node)) return rule;
  }
  return nullptr;
}

// Takes one part off every node that holds one whose rule is off. False when there was none.
bool split_nodes(FusedGraph& result, const FusionSet& rules) {
  const std::shared_ptr<const Graph> source = result.graph;
  const Graph& from = *source;
  const bool nothing = std::ranges::none_of(
      from.nodes(), [&](const Node& node) { return rule_to_split(node, rules) != nullptr; });
  if (nothing) return false;
  const auto to = std::make_shared<Graph>();
  std::vector<ValueId> copies = copy_sources(from, *to);
  for (const Node& original : from.nodes()) {
    Node node = with_copies(original, copies);
    std::vector<ValueId> outputs;
    if (const FusionRule* rule = rule_to_split(node, rules)) {
      outputs = {rule->split(*to, node)};
      result.changes.push_back(std::string(rule->name) + " is off: split '" + node.name + "'");
    } else {
      outputs = to->add(*node.op, std::move(node.name), std::move(node.inputs), std::move(node.attributes));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      require_same(to->value(outputs[i]), from.value(original.outputs[i]), original.name);
      copies[original.outputs[i].index] = outputs[i];
    }
  }
  copy_outputs(from, *to, copies);
  result.graph = to;
  return true;
}

// A graph's nodes while rules work on them. Values keep their ids; absorbed nodes have no operator.
class Draft final : public FusionContext {
 public:
  Draft(const Graph& graph, const FusionSet& rules, const Capabilities* device)
      : graph_(graph), rules_(rules), device_(device), nodes_(graph.nodes().begin(), graph.nodes().end()) {
    const size_t count = graph.values().size();
    readers_.resize(count);
    producer_.resize(count, nullptr);
    for (const Node& node : nodes_) count_in(node);
  }

  const Node& node() const override { return nodes_[at_]; }
  const Value& value(ValueId id) const override { return graph_.value(id); }
  const Node* absorbable(ValueId id, const OpDef& op) const override {
    const Node* producer = id ? producer_[id.index] : nullptr;
    if (!producer || producer->op != &op || readers_[id.index] != 1) return nullptr;
    const bool seen = std::ranges::any_of(producer->outputs, [&](ValueId output) {
      return graph_.value(output).role != Role::intermediate || (output != id && readers_[output.index] > 0);
    });
    return seen || reads_what_changes(*producer) ? nullptr : producer;
  }
  bool is_later(const Node& a, const Node& b) const override { return &a > &b; }

  // Says what it did, a sentence a change.
  std::vector<std::string> run() {
    std::vector<std::string> changes;
    for (bool changed = true; changed;) {
      changed = false;
      for (at_ = 0; at_ < nodes_.size(); ++at_) {
        while (nodes_[at_].op && apply_one(changes)) changed = true;
      }
    }
    return changes;
  }

  std::shared_ptr<const Graph> finish() const {
    const auto to = std::make_shared<Graph>();
    std::vector<ValueId> copies = copy_sources(graph_, *to);
    for (const Node& original : nodes_) {
      if (!original.op) continue;
      Node node = with_copies(original, copies);
      const auto outputs =
          to->add(*node.op, std::move(node.name), std::move(node.inputs), std::move(node.attributes));
      for (size_t i = 0; i < outputs.size(); ++i) {
        require_same(to->value(outputs[i]), graph_.value(original.outputs[i]), original.name);
        copies[original.outputs[i].index] = outputs[i];
      }
    }
    copy_outputs(graph_, *to, copies);
    return to;
  }

 private:
  // Whether a node behind `producer`, up to and with the node at hand, stores to a state that it reads.
  bool reads_what_changes(const Node& producer) const {
    for (const Node* writer = &producer + 1; writer <= &nodes_[at_]; ++writer) {
      for (const ValueId stored : writer->outputs) {
        const bool read = std::ranges::any_of(producer.inputs, [&](ValueId input) {
          return input && overlap(graph_.value(input), graph_.value(stored));
        });
        if (read) return true;
      }
    }
    return false;
  }

  bool apply_one(std::vector<std::string>& changes) {
    for (const FusionRule* rule : all_fusion_rules()) {
      if (!rules_.contains(rule->name)) continue;
      if (rule->suits && (!device_ || !rule->suits(*device_))) continue;
      std::optional<Fused> fused = rule->fuse(*this);
      if (!fused) continue;
      std::string names;
      for (const Node* part : fused->absorbed) names += "'" + part->name + "' and ";
      changes.push_back(std::string(rule->name) + ": fused " + names + "'" + node().name + "'");
      fused->node.outputs = node().outputs;
      for (const Node* part : fused->absorbed) {
        Node& absorbed = nodes_[static_cast<size_t>(part - nodes_.data())];
        count_out(absorbed);
        absorbed = {};
      }
      count_out(nodes_[at_]);
      nodes_[at_] = std::move(fused->node);
      count_in(nodes_[at_]);
      return true;
    }
    return false;
  }

  void count_in(const Node& node) {
    for (const ValueId id : node.inputs) {
      if (id) ++readers_[id.index];
    }
    for (const ValueId id : node.outputs) producer_[id.index] = &node;
  }
  void count_out(const Node& node) {
    for (const ValueId id : node.inputs) {
      if (id) --readers_[id.index];
    }
    for (const ValueId id : node.outputs) producer_[id.index] = nullptr;
  }

  const Graph& graph_;
  const FusionSet& rules_;
  const Capabilities* device_;
  std::vector<Node> nodes_;  // never grows: pointers into it stay good
  std::vector<uint32_t> readers_;
  std::vector<const Node*> producer_;
  size_t at_ = 0;
};

}  // namespace

std::vector<std::string_view> fusion_names() {
  std::vector<std::string_view> names;
  for (const FusionRule* rule : all_fusion_rules()) {
    if (std::ranges::find(names, rule->name) == names.end()) names.push_back(rule->name);
  }
  return names;
}

FusionSet all_fusions() {
  const auto names = fusion_names();
  return {names.begin(), names.end()};
}

FusionSet parse_fusions(std::string_view text) {
  if (text == "all") return all_fusions();
  if (text == "none") return {};
  FusionSet rules;
  const auto known = fusion_names();
  while (true) {
    const std::string_view item = text.substr(0, text.find(','));
    if (std::ranges::find(known, item) == known.end()) {
      std::string names;
      for (const std::string_view name : known) names += (names.empty() ? "" : ", ") + std::string(name);
      throw Error(ErrorCode::usage,
                  "fusion '" + std::string(item) + "' is not known, expected all, none or some of: " + names);
    }
    rules.emplace(item);
    if (item.size() == text.size()) return rules;
    text.remove_prefix(item.size() + 1);
  }
}

FusedGraph fuse(std::shared_ptr<const Graph> graph, const FusionSet& rules, const Capabilities* device) {
  FusedGraph result{.graph = std::move(graph), .changes = {}};
  while (split_nodes(result, rules)) {
  }
  Draft draft(*result.graph, rules, device);
  const std::vector<std::string> changes = draft.run();
  if (changes.empty()) return result;
  result.graph = draft.finish();
  result.changes.insert(result.changes.end(), changes.begin(), changes.end());
  return result;
}

std::vector<std::string_view> fused_parts(const Node& node) {
  std::vector<std::string_view> parts;
  for (const FusionRule* rule : all_fusion_rules()) {
    if (rule->holds(node)) parts.push_back(rule->name);
  }
  return parts;
}

}  // namespace vitrine
