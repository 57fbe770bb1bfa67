// Reverse-mode differentiation: appends to a graph the nodes that compute the gradients of some of its
// values. Each operator says how by its OpDef::backward, in terms of other operators, so that what comes out
// is planned, fused and run like any other graph.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace vitrine {

// What an operator's backward is given: a node, and the gradients of its outputs. It appends nodes to graph()
// and hands over what they compute.
class GradContext {
 public:
  virtual ~GradContext() = default;
  virtual Graph& graph() = 0;
  virtual const Node& node() const = 0;
  // A node's input or output as a value that can be read here. Values that are computed anew instead of being
  // kept are, the first time that they are asked for; so ask only for what is needed.
  virtual ValueId input(size_t i) = 0;
  virtual ValueId output(size_t i) = 0;
  // None where nothing that is differentiated depends on the output.
  virtual ValueId gradient(size_t output) const = 0;
  // Whether the gradient of input i is asked for. Others need not be computed.
  virtual bool wants(size_t i) const = 0;
  // Adds to the gradient of input i, which has the input's shape.
  virtual void add(size_t i, ValueId gradient) = 0;
  // Takes away what the gradient of input i has come to so far; none if nothing has been added. Whoever takes
  // it adds it to what it hands over: for operators that do so as they write their result.
  virtual ValueId take(size_t i) = 0;

  bool has_input(size_t i) const { return i < node().inputs.size() && bool(node().inputs[i]); }
  const Attributes& attributes() const { return node().attributes; }
  // Shapes and types; asking for them computes nothing anew.
  const Value& input_value(size_t i) { return graph().value(node().inputs.at(i)); }
  const Value& output_value(size_t i) { return graph().value(node().outputs.at(i)); }
  // A node's name for what belongs to the derivative of this node: "NODE.grad.WHAT".
  std::string name(std::string_view what) const;
  // Throws an Error that names the operator and the node.
  [[noreturn]] void refuse(const std::string& what) const;
};

// A value whose gradient is known: 1 for a loss, say, or the weight of each sample's loss.
struct GradientSeed {
  ValueId value, gradient;
};

struct AutodiffOptions {
  // To which segment a node belongs, if to any. Of a segment only what other nodes read is kept until its
  // derivative is computed; all else that this needs is then computed once more.
  std::function<std::optional<uint32_t>(const Node&)> segment = {};
};

// Appends the gradients with respect to `wrt`, in that order; none where nothing depends on a value. Throws
// an Error that names the node whose operator has no derivative. The nodes in between should be
// those of plain_graph(): not all that rules of fusion merge has a derivative of its own.
std::vector<ValueId> add_gradients(Graph& graph, std::span<const GradientSeed> seeds,
                                   std::span<const ValueId> wrt, const AutodiffOptions& options = {});

// The sum of two contributions to a gradient, as a node. The operator of sums defines it (runtime/ops/elementwise/binary.cpp).
ValueId sum_gradients(Graph& graph, std::string name, ValueId a, ValueId b);

// The graph with every node split into what rules of fusion would merge again, but for what has a derivative
// as a whole (FusionRule::has_derivative). Inputs, constants, states and outputs keep their names; other
// values are new ones.
Graph plain_graph(const Graph& graph);

}  // namespace vitrine
