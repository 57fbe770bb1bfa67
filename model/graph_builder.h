// What modules append themselves to: a graph, its constants by name, and which storage type each layer has.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/parameters.h"
#include "runtime/graph/graph.h"

namespace vitrine {

// Layers whose matrices are not stored in the graph's own type, by name: "blocks.7.mlp". An attention's
// and an MLP's type is also that of what the norm in front of it writes.
using LayerTypes = std::map<std::string, DType, std::less<>>;

class GraphBuilder {
 public:
  explicit GraphBuilder(DType dtype = DType::f32, LayerTypes layers = {});

  Graph& graph() { return *graph_; }
  // How the named layer's matrices, and what they are multiplied with, are stored. All else is f32.
  DType dtype(std::string_view layer) const;
  // The layers that dtype() was asked for, in that order: those that a LayerTypes can name.
  std::span<const std::string> layers() const { return asked_; }
  // The parameter as a constant, made on first use: matrices in `matrices`, all else in f32.
  ValueId constant(const Parameter& parameter, DType matrices);

  // The graph, which can't be added to from here on.
  std::shared_ptr<const Graph> finish() { return std::move(graph_); }

 private:
  std::shared_ptr<Graph> graph_;
  DType dtype_;
  LayerTypes layers_;
  mutable std::vector<std::string> asked_;
  std::map<std::string, ValueId, std::less<>> constants_;
};

}  // namespace vitrine
