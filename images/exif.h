// EXIF's orientation: where to find it, and how to turn a picture by it.
#pragma once

#include <cstddef>
#include <span>

#include "images/image.h"

namespace vitrine {

// The orientation, 1 to 8, that an EXIF block asks for (a TIFF file, with or without "Exif\0\0" before
// it); 1 where it holds none that can be read.
int exif_orientation(std::span<const std::byte> block);

// The picture as a person should see it.
Image turned(Image image, int orientation);

}  // namespace vitrine
