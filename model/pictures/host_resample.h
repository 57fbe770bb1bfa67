// Resizing on the host, for pictures that are too large for a device, and for devices that are the host
// themselves. The same sums as the shaders', so the same bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/pictures/preprocess.h"

namespace vitrine {

// The result's pixels, row by row, from a whole picture that is `width` pixels wide. Keeps
// few rows beside them. `plain`: as on a processor without wide registers, whatever this one has.
std::vector<uint32_t> resample_on_host(std::span<const uint32_t> pixels, uint32_t width,
                                       const PreparedPicture& prepared, bool plain = false);

// What leaves a picture as it is.
PreparedPicture unchanged_picture(uint32_t height, uint32_t width);

}  // namespace vitrine
