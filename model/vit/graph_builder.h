// What modules append themselves to: a graph, its constants by name, and which storage type each layer has.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/low_rank.h"
#include "model/vit/parameters.h"
#include "model/vit/position_table.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/products/matmul.h"

namespace vitrine {

// Layers whose matrices are not stored in the graph's own type, by name: "blocks.7.mlp". An attention's
// and an MLP's type is also that of what the norm in front of it writes.
using LayerTypes = std::map<std::string, DType, std::less<>>;

// What differs in a graph whose parameters are being learned.
struct LearnedParameters {
  // Where each lies; parameters that aren't named here are constants.
  std::map<std::string, StatePlace, std::less<>> places;
  // Builds what only training does: dropout and stochastic depth are active, and attention keeps what its
  // derivative needs. It then has the input "step", the words of shaders/lib/step_state.h.
  bool training = false;
  // The blocks' products may round what they multiply to f16 (MatmulOptions::rounded).
  bool rounded = false;
  // Pairs beside linear layers; their matrices are learned, too.
  LowRankPairs low_rank = {};
};

class GraphBuilder {
 public:
  explicit GraphBuilder(DType dtype = DType::f32, LayerTypes layers = {});
  explicit GraphBuilder(LearnedParameters learned);

  Graph& graph() { return *graph_; }
  // How the named layer's matrices, and what they are multiplied with, are stored. All else is f32.
  DType dtype(std::string_view layer) const;
  // The layers that dtype() was asked for, in that order: those that a LayerTypes can name.
  std::span<const std::string> layers() const { return asked_; }
  // The parameter as a constant, made on first use: matrices in `matrices`, all else in f32. As a state where
  // it is learned.
  ValueId constant(const Parameter& parameter, DType matrices);

  // From here on the positions are those of another grid, which parameters are then declared for: constants
  // of their own, by PositionsName.
  void take_positions_of(Grid grid) { positions_grid_ = grid; }

  // Parameters that lie one behind the other as one, joined along the first axis; none where they don't, or
  // where they are constants.
  ValueId joined(std::span<const Parameter* const> parameters);

  // Some rows of a parameter that isn't learned, as a constant of its own.
  ValueId rows(const Parameter& parameter, uint64_t first, uint64_t count);

  // The pairs beside a layer, none where there are none.
  std::span<const LowRankPair> pairs_of(std::string_view layer) const;
  // What a pair makes of the layer's x, scaled; options may add it to what the layer makes. `node` is that
  // layer's name.
  ValueId low_rank(const std::string& node, ValueId x, const LowRankPair& pair,
                   const MatmulOptions& options = {});

  bool training() const { return bool(step_); }
  // As LearnedParameters has it.
  bool rounded() const { return learned_.rounded; }
  // While training, zeros that part of x by chance and scales the rest so that the mean stays; else x.
  ValueId dropout(std::string name, ValueId x, double rate);
  // The same for all of a sample at once: stochastic depth. x [B, ..].
  ValueId drop_samples(std::string name, ValueId x, double rate);
  // The input of that name, where there is one.
  ValueId step() const { return step_; }
  // A number for each place in the graph that draws random numbers, counted in the order of building.
  uint32_t next_stream() { return streams_++; }

  // The graph, which can't be added to from here on.
  std::shared_ptr<const Graph> finish() { return std::move(graph_); }

 private:
  std::shared_ptr<Graph> graph_;
  DType dtype_;
  LayerTypes layers_;
  mutable std::vector<std::string> asked_;
  std::map<std::string, ValueId, std::less<>> constants_;
  LearnedParameters learned_;
  std::optional<Grid> positions_grid_;
  ValueId step_;
  uint32_t streams_ = 0;
};

}  // namespace vitrine
