// The host's side of picture operations: what is done to one picture's bytes, as the words that the shaders
// read. The arithmetic is Pillow's, as its x86-64 packages have it (floats and doubles without fused
// multiply-adds).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "shaders/pictures/picture_operation.h"

namespace vitrine {

enum class PictureOperationKind : uint8_t {
  none = VITRINE_OPERATION_NONE,
  brightness = VITRINE_OPERATION_BRIGHTNESS,      // ImageEnhance.Brightness
  contrast = VITRINE_OPERATION_CONTRAST,          // ImageEnhance.Contrast
  posterize = VITRINE_OPERATION_POSTERIZE,        // ImageOps.posterize
  solarize = VITRINE_OPERATION_SOLARIZE,          // ImageOps.solarize
  solarize_add = VITRINE_OPERATION_SOLARIZE_ADD,  // timm's, with a threshold of 128
  invert = VITRINE_OPERATION_INVERT,              // ImageOps.invert
  autocontrast = VITRINE_OPERATION_AUTOCONTRAST,  // ImageOps.autocontrast
  equalize = VITRINE_OPERATION_EQUALIZE,          // ImageOps.equalize
  color = VITRINE_OPERATION_COLOR,                // ImageEnhance.Color
  hue = VITRINE_OPERATION_HUE,                    // torchvision's adjust_hue
  sharpness = VITRINE_OPERATION_SHARPNESS,        // ImageEnhance.Sharpness
  nearest = VITRINE_OPERATION_NEAREST,            // Image.transform(size, AFFINE, matrix), by its filters
  bilinear = VITRINE_OPERATION_BILINEAR,
  bicubic = VITRINE_OPERATION_BICUBIC,
};

// Where an output pixel comes from: x' = m[0] x + m[1] y + m[2], y' = m[3] x + m[4] y + m[5], of the pixels'
// middles.
using AffineMatrix = std::array<double, 6>;

struct PictureOperation {
  PictureOperationKind kind = PictureOperationKind::none;
  double factor = 0;    // brightness, contrast, color, sharpness: 1 leaves the picture as it is
  uint32_t number = 0;  // posterize: bits that stay, 0 to 8; solarize: the first byte that is inverted, up to
                        // 256; solarize_add: up to 255; hue: a byte
  AffineMatrix matrix{};
  uint32_t fill = 0xff000000;  // a pixel, where none comes from the picture

  bool operator==(const PictureOperation&) const = default;
};

// Writes VITRINE_OPERATION_WORDS words, for a picture of this size. Throws Error(failed) where a matrix takes
// places further away than Pillow's fixed point, or the shader's, can say.
void write_operation(const PictureOperation& operation, uint32_t width, uint32_t height,
                     std::span<uint32_t> words);

}  // namespace vitrine
