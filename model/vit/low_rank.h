// Pairs of narrow matrices beside linear layers (LoRA): a layer with a pair gives W x + b + scale * B (A x).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/parameters.h"

namespace vitrine {

struct LowRankPair {
  Parameter down, up;      // A [rank, inputs], B [rows, rank]
  uint64_t first_row = 0;  // of the layer's outputs, from which on B's are added to them

  uint64_t rows() const { return up.shape[0]; }
};

struct LowRankPairs {
  double scale = 1;
  double dropout = 0;  // of what A is given, while training
  // By the layer's name, "blocks.0.attn.qkv", in the order of their rows. One that is fused may have a pair
  // for each of its parts.
  std::map<std::string, std::vector<LowRankPair>, std::less<>> layers = {};

  bool empty() const { return layers.empty(); }
};

// The name under which a graph asks for some rows of a constant: "blocks.0.attn.qkv.weight[24:48]".
struct RowsName {
  std::string parameter;
  uint64_t first = 0, rows = 0;

  std::string text() const;
};
// Nothing (no rows) where the name is a whole constant's.
RowsName rows_named(std::string_view name);

}  // namespace vitrine
