// Rewrites a graph before it is planned: operators that one dispatch can do together become one node, and
// where a rule is switched off, nodes that were written as one become several. Both give the same values
// but for rounding, and every output keeps its name, type and place. Pure and deterministic.
//
// A rule belongs to an operator and lies in its files: `extern const FusionRule fuse_NAME` at the start of a
// line of runtime/ops/*.cpp. cmake/ops.cmake collects them into one table.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace vitrine {

struct Capabilities;

// The rules that are on, by name.
using FusionSet = std::set<std::string, std::less<>>;

// What a rule sees: a node, and who computes what it reads.
class FusionContext {
 public:
  virtual ~FusionContext() = default;
  virtual const Node& node() const = 0;
  virtual const Value& value(ValueId id) const = 0;
  // The node that computes `id`, if it is of this operator and nothing but the node at hand reads what it
  // computes, once, and what it reads would be the same where the node at hand runs: the only kind of node
  // that may disappear. Else nullptr.
  virtual const Node* absorbable(ValueId id, const OpDef& op) const = 0;
  // Of two such nodes, whether `a` comes later.
  virtual bool is_later(const Node& a, const Node& b) const = 0;

  const Value& input(size_t i) const { return value(node().inputs.at(i)); }
  const Value& output() const { return value(node().outputs.at(0)); }
};

// One node that does the work of the node at hand and of those that it absorbs. Its outputs are those of
// the node at hand.
struct Fused {
  Node node;
  std::vector<const Node*> absorbed;
};

struct FusionRule {
  std::string_view name;  // as --fuse has it; rules of one name are switched together
  std::string_view what;  // what it saves, for people
  // Whether the node does this rule's part already.
  bool (*holds)(const Node& node);
  // What the node and its producers become; nothing where the rule doesn't fit.
  std::optional<Fused> (*fuse)(const FusionContext& context);
  // For a node that holds the part: appends nodes to `graph` that do the same without, and returns their
  // result. The node's inputs are values of `graph`.
  ValueId (*split)(Graph& graph, const Node& node);
  // Whether the one node that does both has a derivative: plain_graph() leaves it whole.
  bool has_derivative = false;
  // Whether it is worth while on a device; null: on all. Nodes that hold the part stay as they are.
  bool (*suits)(const Capabilities& device) = nullptr;
};

// All rules of this build. Their order is that in which they are tried.
std::span<const FusionRule* const> all_fusion_rules();

// The names, each once; and all of them as a set.
std::vector<std::string_view> fusion_names();
FusionSet all_fusions();

// "all", "none" or "rule[,rule]", as in --fuse; throws Error(usage) for names that no rule has.
FusionSet parse_fusions(std::string_view text);

struct FusedGraph {
  std::shared_ptr<const Graph> graph;  // the given one where nothing was to be done
  std::vector<std::string> changes;    // one sentence each, in the order in which they were made
};
// Without a device, rules that only some devices gain by are left out.
FusedGraph fuse(std::shared_ptr<const Graph> graph, const FusionSet& rules,
                const Capabilities* device = nullptr);

// The names of the rules whose parts the node does besides its own, in the order of the table.
std::vector<std::string_view> fused_parts(const Node& node);

}  // namespace vitrine
