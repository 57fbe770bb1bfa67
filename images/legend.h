// A bar of a map's colors with the numbers at its ends and middle.
#pragma once

#include "images/color_map.h"
#include "images/image.h"

namespace vitrine {

// The picture with the bar to its right.
Image with_legend(const Image& picture, ColorMap map, double low, double high);

}  // namespace vitrine
