#include "runtime/ops/pictures/reference_resample.h"

#include <algorithm>

#include "runtime/check/op_case.h"
#include "runtime/graph/op.h"
#include "shaders/pictures/resample.h"

namespace vitrine::reference {
namespace {

constexpr uint64_t block_rows = VITRINE_RESAMPLE_BLOCK_ROWS;

// The weighted sum of `count` pixels that lie `stride` apart.
uint32_t sum_pixels(const ResampleTaps& taps, size_t line, std::span<const uint32_t> pixels,
                    uint64_t stride) {
  const ResampleTaps::Line& entry = taps.lines[line];
  uint32_t result = 0xff000000;
  for (uint32_t channel = 0; channel < 3; ++channel) {
    int64_t sum = 1 << 21;
    for (uint32_t k = 0; k < entry.count; ++k) {
      const uint32_t pixel = pixels[(entry.first + k) * stride];
      sum += int64_t{taps.weights[entry.weight + k]} * ((pixel >> (8 * channel)) & 255);
    }
    // Division that rounds down, as a shift of a negative number does.
    const int64_t value = sum >= 0 ? sum / (1 << 22) : -((-sum + (1 << 22) - 1) / (1 << 22));
    result |= static_cast<uint32_t>(std::clamp<int64_t>(value, 0, 255)) << (8 * channel);
  }
  return result;
}

// Those that are none have no lines.
uint64_t columns_of(std::span<const ResamplePicture> pictures) {
  size_t columns = 0;
  for (const ResamplePicture& picture : pictures) columns = std::max(columns, picture.columns.lines.size());
  return columns;
}

}  // namespace

std::vector<uint32_t> resample_rows(std::span<const ResamplePicture> pictures,
                                    std::span<const uint32_t> pixels, uint64_t blocks) {
  const uint64_t columns = columns_of(pictures);
  std::vector<uint32_t> out(blocks * block_rows * columns, unwritten_word);
  uint64_t block = 0, from = 0;
  for (const ResamplePicture& picture : pictures) {
    for (uint64_t y = 0; y < picture.height; ++y) {
      for (uint64_t x = picture.columns.begin; x < picture.columns.end; ++x) {
        out[(block * block_rows + y) * columns + x] =
            sum_pixels(picture.columns, x, pixels.subspan(from + y * picture.width), 1);
      }
    }
    block += ceil_div(picture.height, block_rows);
    from += uint64_t{picture.width} * picture.height;
  }
  return out;
}

std::vector<uint32_t> resample_columns(std::span<const ResamplePicture> pictures,
                                       std::span<const uint32_t> x) {
  const uint64_t columns = columns_of(pictures);
  uint64_t height = 0;
  for (const ResamplePicture& picture : pictures) height = std::max(height, picture.rows.lines.size());
  std::vector<uint32_t> out;
  uint64_t block = 0;
  for (const ResamplePicture& picture : pictures) {
    if (picture.rows.lines.empty()) out.resize(out.size() + height * columns, unwritten_word);
    for (uint64_t row = 0; row < picture.rows.lines.size(); ++row) {
      for (uint64_t column = 0; column < columns; ++column) {
        const bool inside = row >= picture.rows.begin && row < picture.rows.end &&
                            column >= picture.columns.begin && column < picture.columns.end;
        out.push_back(
            inside ? sum_pixels(picture.rows, row, x.subspan(block * block_rows * columns + column), columns)
                   : picture.fill);
      }
    }
    block += ceil_div(picture.height, block_rows);
  }
  return out;
}

}  // namespace vitrine::reference
