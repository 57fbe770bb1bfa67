// Numbers over a picture, as warmth: what an attention map looks like.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "images/color_map.h"
#include "images/image.h"

namespace vitrine {

struct OverlayOptions {
  ColorMap map = ColorMap::inferno;
  // How much of the picture the color hides, 0 to 1, where the numbers are largest; where they are
  // smallest it hides less.
  double opacity = 0.8;
  // The numbers at the two ends of the map; the smallest and the largest that there are if absent.
  struct Range {
    double low = 0, high = 1;
  };
  std::optional<Range> range;
  // The part of the picture that the numbers are about, in its pixels: what a model's crop left of it.
  // It may reach past the picture. The rest of the picture is shown dark. All of it if absent.
  struct Region {
    double left = 0, top = 0, width = 0, height = 0;
  };
  std::optional<Region> region;
  // A picture whose shorter side has fewer pixels is enlarged by a whole factor first.
  uint32_t least_side = 384;
  // A bar on the right that says which number has which color.
  bool legend = true;
};

// `heat` is rows of `cols` numbers, one a patch. Between patches it is interpolated smoothly and never
// beyond what the neighbours have. Error(usage) if the sizes do not fit, Error(failed) if a number is
// not finite.
Image overlay(const Image& picture, std::span<const float> heat, uint32_t rows, uint32_t cols,
              const OverlayOptions& options = {});

}  // namespace vitrine
