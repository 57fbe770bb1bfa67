// One layer of attention rollout (Abnar & Zuidema 2020): how much of each token reaches another through
// all layers, when every layer passes on half of what it gets and mixes the other half by its attention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_attention_rollout;
std::vector<reference::OpCase> attention_rollout_cases();

struct RolloutRows {
  uint64_t first_row = 0;
  uint64_t rows = 0;       // 0: all from first_row on
  bool mean_rows = false;  // one row, their mean
};

// maps [B, N, N] f32: a layer's attention weights, the mean of its heads. A is (maps + I) / 2 with every
// row divided by its sum. The rollout of layers 1 to L is A_L ... A_1; its rows come from the last layer
// to the first, each a product of rows and a matrix: start [B, rows, N] f32 is what the layer above gave,
// or none at the last layer, where `which` says which rows are wanted. Gives [B, rows, N] f32.
ValueId attention_rollout(Graph& graph, std::string name, ValueId maps, const RolloutRows& which);
ValueId attention_rollout(Graph& graph, std::string name, ValueId maps, ValueId start);

}  // namespace vitrine
