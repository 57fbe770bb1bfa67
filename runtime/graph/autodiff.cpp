#include "runtime/graph/autodiff.h"

#include <map>
#include <memory>
#include <utility>

#include "runtime/graph/fusion.h"
#include "runtime/graph/op.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

class Differentiation final : public GradContext {
 public:
  Differentiation(Graph& graph, std::span<const ValueId> wrt, const AutodiffOptions& options)
      : graph_(graph),
        options_(options),
        forward_(graph.nodes().begin(), graph.nodes().end()),
        gradients_(graph.values().size()),
        varies_(graph.values().size()),
        producer_(graph.values().size()) {
    for (const ValueId id : wrt) varies_.at(id.index) = true;
    for (size_t at = 0; at < forward_.size(); ++at) {
      bool varies = false;
      for (const ValueId id : forward_[at].inputs) varies |= id && varies_[id.index];
      for (const ValueId id : forward_[at].outputs) {
        varies_[id.index] = varies_[id.index] || varies;
        producer_[id.index] = at;
      }
    }
    find_kept();
  }

  std::vector<ValueId> run(std::span<const GradientSeed> seeds, std::span<const ValueId> wrt) {
    for (const GradientSeed& seed : seeds) {
      const Shape &shape = graph_.value(seed.value).shape, &given = graph_.value(seed.gradient).shape;
      if (!(shape == given)) {
        throw Error(ErrorCode::usage, "the gradient of '" + graph_.value(seed.value).name + "' is given as " +
                                          given.to_string() + ", " + shape.to_string() + " was expected");
      }
      accumulate(seed.value, seed.gradient);
    }
    for (at_ = forward_.size(); at_-- > 0;) {
      const Node& node = forward_[at_];
      bool reached = false, asked = false;
      for (const ValueId id : node.outputs) reached |= bool(gradients_[id.index]);
      for (const ValueId id : node.inputs) asked |= id && varies_[id.index];
      if (!reached || !asked) continue;
      if (!node.op->backward) refuse("this operator has no derivative");
      node.op->backward(*this);
    }
    std::vector<ValueId> result;
    for (const ValueId id : wrt) result.push_back(gradients_[id.index]);
    return result;
  }

  Graph& graph() override { return graph_; }
  const Node& node() const override { return forward_[at_]; }
  ValueId input(size_t i) override { return readable(node().inputs.at(i)); }
  ValueId output(size_t i) override { return readable(node().outputs.at(i)); }
  ValueId gradient(size_t i) const override { return gradients_[node().outputs.at(i).index]; }
  bool wants(size_t i) const override { return has_input(i) && varies_[node().inputs[i].index]; }

  void add(size_t i, ValueId gradient) override {
    if (!wants(i)) return;
    const Value &value = graph_.value(node().inputs[i]), &given = graph_.value(gradient);
    if (!(value.shape == given.shape)) {
      refuse("the gradient of input " + std::to_string(i) + " is " + given.shape.to_string() + ", " +
             value.shape.to_string() + " was expected");
    }
    accumulate(node().inputs[i], gradient);
  }

  ValueId take(size_t i) override {
    return wants(i) ? std::exchange(gradients_[node().inputs[i].index], {}) : ValueId{};
  }

 private:
  // Summed as they come, so that no contribution waits in memory for the others.
  void accumulate(ValueId id, ValueId gradient) {
    ValueId& sum = gradients_.at(id.index);
    sum = sum ? sum_gradients(graph_, graph_.value(id).name + ".grad.sum", sum, gradient) : gradient;
  }

  std::optional<uint32_t> segment_of(size_t node) const {
    return options_.segment ? options_.segment(forward_[node]) : std::nullopt;
  }

  // A segment keeps what nodes of no or another segment read.
  void find_kept() {
    kept_.resize(producer_.size(), true);
    if (!options_.segment) return;
    for (size_t id = 0; id < producer_.size(); ++id) {
      kept_[id] =
          !producer_[id] || !segment_of(*producer_[id]) || graph_.values()[id].role != Role::intermediate;
    }
    for (size_t at = 0; at < forward_.size(); ++at) {
      for (const ValueId id : forward_[at].inputs) {
        if (id && !kept_[id.index] && segment_of(at) != segment_of(*producer_[id.index]))
          kept_[id.index] = true;
      }
    }
  }

  ValueId readable(ValueId id) {
    if (!id || kept_[id.index]) return id;
    if (const auto made = again_.find(id); made != again_.end()) return made->second;
    Node copy = forward_[*producer_[id.index]];
    const std::vector<ValueId> outputs = copy.outputs;
    for (ValueId& input : copy.inputs) input = readable(input);
    const auto values =
        graph_.add(*copy.op, copy.name + ".again", std::move(copy.inputs), std::move(copy.attributes));
    for (size_t i = 0; i < outputs.size(); ++i) again_.emplace(outputs[i], values[i]);
    return again_.at(id);
  }

  Graph& graph_;
  const AutodiffOptions& options_;
  const std::vector<Node> forward_;
  std::vector<ValueId> gradients_;               // one a value of the forward graph
  std::vector<bool> varies_;                     // whether the value depends on any of `wrt`
  std::vector<std::optional<size_t>> producer_;  // which node computes the value
  std::vector<bool> kept_;
  std::map<ValueId, ValueId> again_;  // values computed once more
  size_t at_ = 0;
};

}  // namespace

std::string GradContext::name(std::string_view what) const {
  return node().name + ".grad." + std::string(what);
}

void GradContext::refuse(const std::string& what) const {
  throw Error(ErrorCode::usage, std::string(node().op->name) + " '" + node().name + "': " + what);
}

std::vector<ValueId> add_gradients(Graph& graph, std::span<const GradientSeed> seeds,
                                   std::span<const ValueId> wrt, const AutodiffOptions& options) {
  return Differentiation(graph, wrt, options).run(seeds, wrt);
}

Graph plain_graph(const Graph& graph) {
  FusionSet rules;
  for (const FusionRule* rule : all_fusion_rules()) {
    if (rule->has_derivative) rules.insert(std::string(rule->name));
  }
  return *fuse(std::make_shared<Graph>(graph), rules).graph;
}

}  // namespace vitrine
