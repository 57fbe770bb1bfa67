// Colors for numbers. In these maps lightness rises with the number, and evenly: what looks twice as far
// away is; they can be read in grey print and by people who don't tell red from green.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace vitrine {

enum class ColorMap : uint8_t { inferno, viridis, grey };

using Rgb = std::array<uint8_t, 3>;

// The color of 0 to 1; below is 0, above is 1.
Rgb color_of(ColorMap map, double value);

// 256 of them from 0 to 1, red in the lowest byte. The colors between two are within one of 255 of what lies
// on the straight line.
std::array<uint32_t, 256> color_table(ColorMap map);

// "inferno", "viridis" or "grey". Error(usage) for other names, which says these.
ColorMap color_map_named(std::string_view name);
std::string_view name_of(ColorMap map);

}  // namespace vitrine
