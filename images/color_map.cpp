#include "images/color_map.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// Every fifteenth of the 256 colors of Nathaniel Smith's and Stefan van der Walt's maps, which they put
// in the public domain (CC0, https://bids.github.io/colormap). In between, straight lines are within 5
// of 255 of theirs.
constexpr std::array<uint32_t, 18> inferno{0x000004, 0x0a0722, 0x1e0c45, 0x380962, 0x510e6c, 0x69166e,
                                           0x801f6c, 0x982766, 0xb0315b, 0xc63d4d, 0xd94d3d, 0xe9612b,
                                           0xf47918, 0xfa9407, 0xfcb014, 0xf8cd37, 0xf2ea69, 0xfcffa4};
constexpr std::array<uint32_t, 18> viridis{0x440154, 0x481769, 0x472a7a, 0x433d84, 0x3d4e8a, 0x355e8d,
                                           0x2e6d8e, 0x297b8e, 0x23898e, 0x1f978b, 0x21a585, 0x2eb37c,
                                           0x46c06f, 0x65cb5e, 0x89d548, 0xb0dd2f, 0xd8e219, 0xfde725};
constexpr std::array<uint32_t, 2> grey{0x000000, 0xffffff};

constexpr std::array<ColorMap, 3> all{ColorMap::inferno, ColorMap::viridis, ColorMap::grey};

std::span<const uint32_t> anchors(ColorMap map) {
  switch (map) {
    case ColorMap::inferno:
      return inferno;
    case ColorMap::viridis:
      return viridis;
    case ColorMap::grey:
      break;
  }
  return grey;
}

}  // namespace

Rgb color_of(ColorMap map, double value) {
  const std::span<const uint32_t> points = anchors(map);
  const double place = std::clamp(value, 0.0, 1.0) * static_cast<double>(points.size() - 1);
  const size_t before = std::min(static_cast<size_t>(place), points.size() - 2);
  const double share = place - static_cast<double>(before);
  Rgb color{};
  for (size_t c = 0; c < 3; c++) {
    const auto channel = [&](uint32_t point) { return static_cast<double>(point >> (16 - 8 * c) & 0xff); };
    color[c] = static_cast<uint8_t>(
        std::lround(channel(points[before]) * (1 - share) + channel(points[before + 1]) * share));
  }
  return color;
}

std::array<uint32_t, 256> color_table(ColorMap map) {
  std::array<uint32_t, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) {
    const Rgb color = color_of(map, static_cast<double>(i) / 255);
    table[i] = color[0] | uint32_t{color[1]} << 8 | uint32_t{color[2]} << 16;
  }
  return table;
}

std::string_view name_of(ColorMap map) {
  switch (map) {
    case ColorMap::inferno:
      return "inferno";
    case ColorMap::viridis:
      return "viridis";
    case ColorMap::grey:
      break;
  }
  return "grey";
}

ColorMap color_map_named(std::string_view name) {
  std::string known;
  for (const ColorMap map : all) {
    if (name == name_of(map)) return map;
    known += (known.empty() ? "" : ", ") + std::string(name_of(map));
  }
  throw Error(ErrorCode::usage, "there is no color map " + in_quotes(name) + ", expected one of " + known);
}

}  // namespace vitrine
