// Where windows lie on a map of pixels: what neighbourhoods, pooling and convolutions go by.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/graph/op.h"

namespace vitrine {

// Windows of kernel_height x kernel_width on a map of height x width pixels: the first begins `top` and
// `left` pixels before it, the next ones stride_y and stride_x further, rows x columns of them. They may
// reach beyond the map's edges.
struct Windows {
  uint64_t height = 0, width = 0;
  uint64_t kernel_height = 1, kernel_width = 1;
  uint64_t stride_y = 1, stride_x = 1;
  uint64_t top = 0, left = 0;
  uint64_t rows = 0, columns = 0;
  bool operator==(const Windows&) const = default;

  // One at each pixel, of that pixel.
  bool are_pixels() const;
};
// Square ones with `padding` pixels on each side of the map, as PyTorch counts; or with as many that
// ceil(size / stride) fit, of an odd number one more behind than in front, as TensorFlow's "same" counts.
Windows padded_windows(uint64_t height, uint64_t width, uint64_t kernel, uint64_t stride, uint64_t padding);
Windows same_windows(uint64_t height, uint64_t width, uint64_t kernel, uint64_t stride);

// Those side by side that cover a map, the last ones of it with what is left.
Windows covering_windows(uint64_t height, uint64_t width, uint64_t window_height, uint64_t window_width);

// As a node's attributes.
void set_windows(Attributes& attributes, const Windows& windows);
Windows windows_of(const Attributes& attributes);
// Checks that x is the map, [images, height * width, channels] or planar, and that each window has a pixel of
// it; gives the channels.
uint64_t require_windows(InferContext& context, const Windows& windows, bool planar);

}  // namespace vitrine
