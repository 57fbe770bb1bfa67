// Resizing on the host, for pictures that are too large for a device, and for devices that are the host
// themselves. The same sums as the shaders', so the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/pictures/preprocess.h"

namespace vitrine {

// Makes `out` the result's pixels, row by row, from a picture of four bytes a pixel that is `width` pixels
// wide. Keeps few rows beside them. `plain`: as on a processor without wide registers, whatever this one has.
void resample_on_host(std::span<const uint8_t> pixels, uint32_t width, const PreparedPicture& prepared,
                      std::vector<uint32_t>& out, bool plain = false);

// What leaves a picture as it is.
PreparedPicture unchanged_picture(uint32_t height, uint32_t width);

}  // namespace vitrine
