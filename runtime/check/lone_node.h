// One node of a graph alone in a graph, with numbers for all that it reads: what the tuner measures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/graph/constants.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/op.h"

namespace vitrine::reference {

class LoneNode final : public ConstantSource {
 public:
  LoneNode(const Graph& graph, const Node& node);

  const std::shared_ptr<const Graph>& graph() const { return graph_; }
  const Node& node() const { return graph_->nodes()[0]; }
  LowerContext context(const Capabilities& device) const { return {*graph_, node(), device}; }

  // Numbers between -1 and 1, as the input's type holds them, that depend on input and element alone.
  bool has_input(size_t i) const { return i < node().inputs.size() && bool(node().inputs[i]); }
  const Value& input(size_t i) const { return graph_->value(node().inputs.at(i)); }
  double value(size_t input, uint64_t element) const;
  std::vector<double> values(size_t input) const;
  std::vector<std::byte> bytes(ValueId id) const;

  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override;

 private:
  std::shared_ptr<const Graph> graph_;
  std::vector<std::byte> constant_;
};

}  // namespace vitrine::reference
