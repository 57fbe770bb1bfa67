// Smaller pictures to show people. What a model is given is resized by model/pictures/preprocess.h instead,
// as its family's library does it.
#pragma once

#include <cstdint>

#include "images/image.h"

namespace vitrine {

// In the picture's proportions, with the long side of `long_side` pixels and the short one of at least one:
// each pixel the mean of the area that it covers. A picture that isn't larger is returned as it is.
Image shrunk(const Image& image, uint32_t long_side);

}  // namespace vitrine
