// The markers of a JPEG file up to its first pixels. libjpeg reads them too, but it forgives what
// Pillow refuses, and the other way round nothing: a picture has to pass both.
#pragma once

#include <cstdint>
#include <string>

#include "images/decoders.h"

namespace vitrine {

struct JpegFrame {
  uint32_t width = 0, height = 0;
  unsigned components = 0;  // 1, 3 or 4
};

// What the last frame header says. Error(failed) if there is none before the pixels, a marker is
// broken, or the samples are of a kind that Pillow does not read.
JpegFrame read_jpeg_markers(FileBytes file, const std::string& name);

}  // namespace vitrine
