// A learned position table for another grid of patches than the one it was trained with.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/vit_config.h"

namespace vitrine {

struct Grid {
  uint64_t height = 0, width = 0;  // patches

  uint64_t patches() const { return height * width; }
  auto operator<=>(const Grid&) const = default;
};

inline Grid grid_of(const ViTConfig& config) { return {config.grid_height(), config.grid_width()}; }

// How the library that published a checkpoint resamples its positions.
struct PositionRule {
  PositionResize resize = PositionResize::bicubic;
  // Where this isn't 0, distances between samples are from / (to + offset) and the last ones fall short of
  // the edge, as in Meta's DINOv2, which added 0.1 against a rounding error. Not with bicubic_corners.
  double offset = 0;
  uint64_t behind = 0;  // rows behind the patches, which stay as they are
  // To the square of the longer side first, of which the first rows and columns are then taken.
  bool square = false;
};

// The name under which a graph asks for positions of another grid than the configuration's:
// "pos_embed[12x20]".
struct PositionsName {
  std::string parameter;
  Grid grid;

  std::string text() const;
};
// Nothing (an empty grid) where the name is another.
PositionsName positions_named(std::string_view name);

// Resamples `table`, [other rows + from.patches() + behind, dim], to [other rows + to.patches() + behind,
// dim]. The rows in front of the patches (class, distillation, registers) stay as they are. Computed in
// double, with PyTorch's coordinates, filters and edges.
std::vector<float> resize_positions(std::span<const float> table, uint64_t dim, Grid from, Grid to,
                                    const PositionRule& rule);

}  // namespace vitrine
