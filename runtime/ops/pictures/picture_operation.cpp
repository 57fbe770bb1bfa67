#include "runtime/ops/pictures/picture_operation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

// Pillow's fixed point, and ours has room for more, holds places below this.
constexpr double furthest = 32768;

void require_near(const AffineMatrix& m, uint32_t width, uint32_t height) {
  for (const uint32_t x : {0u, width}) {
    for (const uint32_t y : {0u, height}) {
      const double from_x = x * m[0] + y * m[1] + m[2], from_y = x * m[3] + y * m[4] + m[5];
      if (std::abs(from_x) < furthest && std::abs(from_y) < furthest) continue;
      throw Error(ErrorCode::failed, "a picture of " + std::to_string(width) + " x " +
                                         std::to_string(height) +
                                         " pixels was to be moved by 32768 pixels or more, expected fewer");
    }
  }
}

uint32_t sixteenths(double value) {
  return static_cast<uint32_t>(static_cast<int32_t>(std::floor(value * 65536 + 0.5)));
}

void write64(uint64_t bits, std::span<uint32_t> words) {
  words[0] = static_cast<uint32_t>(bits);
  words[1] = static_cast<uint32_t>(bits >> 32);
}

// How far the shader's floats and its places of 2^-32 pixels may be off, four times what adding up the errors
// of each step comes to; for bytes that differ by 1 at most.
float slack_of(PictureOperationKind kind, uint32_t width, uint32_t height) {
  const double place = (double{1} + width + height) * 0x1p-32;
  return static_cast<float>(kind == PictureOperationKind::bilinear ? 0x1p-19 + 4 * place
                                                                   : 0x1p-15 + 64 * place);
}

}  // namespace

void write_operation(const PictureOperation& operation, uint32_t width, uint32_t height,
                     std::span<uint32_t> words) {
  using enum PictureOperationKind;
  std::ranges::fill(words, 0u);
  words[VITRINE_OPERATION_KIND] = static_cast<uint32_t>(operation.kind);
  words[VITRINE_OPERATION_FILL] = operation.fill;
  uint32_t& argument = words[VITRINE_OPERATION_ARGUMENT];
  const AffineMatrix& m = operation.matrix;
  switch (operation.kind) {
    case brightness:
    case contrast:
    case color:
    case sharpness:
      argument = std::bit_cast<uint32_t>(static_cast<float>(operation.factor));
      return;
    case posterize:
      argument = 0xff & ~((1u << (8 - operation.number)) - 1);
      return;
    case nearest: {
      require_near(m, width, height);
      const AffineMatrix middle{m[0], m[1], m[2] + m[0] * 0.5 + m[1] * 0.5,
                                m[3], m[4], m[5] + m[3] * 0.5 + m[4] * 0.5};
      std::ranges::transform(middle, words.begin() + VITRINE_OPERATION_MATRIX, sixteenths);
      return;
    }
    case bilinear:
    case bicubic:
      require_near(m, width, height);
      words[VITRINE_OPERATION_SLACK] = std::bit_cast<uint32_t>(slack_of(operation.kind, width, height));
      for (size_t i = 0; i < m.size(); ++i) {
        write64(std::bit_cast<uint64_t>(m[i]), words.subspan(VITRINE_OPERATION_MATRIX + 2 * i, 2));
        const double unit = i % 3 == 2 ? 0x1p32 : 0x1p31;
        write64(static_cast<uint64_t>(std::llround(m[i] * unit)),
                words.subspan(VITRINE_OPERATION_FIXED + 2 * i, 2));
      }
      return;
    default:
      argument = operation.number;
  }
}

}  // namespace vitrine
