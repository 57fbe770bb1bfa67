// Numbers of patches as colored pixels that can lie over a picture: how a heat map is seen without leaving
// the device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/op.h"
#include "shaders/lib/heat.h"

namespace vitrine {

extern const OpDef op_heat;
std::vector<reference::OpCase> heat_cases();

// Pixels a patch in both directions, and colors in a table.
constexpr uint64_t heat_pixels = VITRINE_HEAT_PIXELS, heat_colors = VITRINE_HEAT_COLORS;

// Which of a row's numbers are patches: height x width of them from `first` on, row by row.
struct HeatGrid {
  uint64_t first = 0, height = 0, width = 0;
};

struct HeatResult {
  // [maps, 9 height, 9 width] u32, red in the lowest byte: each map from its smallest to its largest number,
  // smooth and monotone between the patches' centers, where the colors are exactly the numbers'. Alpha is
  // how much of the picture behind is to be hidden: more where it is warm. A patch whose number isn't finite
  // is magenta.
  ValueId pixels;
  ValueId numbers;  // [maps, height, width] f32
};

// One row of each map of `stored` [maps, rows, tokens] f32, and with `with_mean` the mean of the maps behind
// them. choice [1] u32 says which row; colors [256] u32 are those from the low end to the high one, red in
// the lowest byte.
HeatResult heat(Graph& graph, std::string name, ValueId stored, ValueId choice, ValueId colors,
                const HeatGrid& grid, bool with_mean);

}  // namespace vitrine
