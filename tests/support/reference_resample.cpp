#include "tests/support/reference_resample.h"

#include <algorithm>
#include <cstdio>

#include "runtime/graph/op.h"

namespace vitrine::test {
namespace {

constexpr uint64_t block_rows = 64;

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

}  // namespace

std::vector<uint32_t> noise_picture(uint64_t seed, uint32_t width, uint32_t height) {
  std::vector<uint32_t> pixels(uint64_t{width} * height);
  uint64_t state = seed * 0x9e3779b97f4a7c15u + (uint64_t{width} << 32) + height;
  for (uint64_t i = 0; i < pixels.size(); ++i) {
    // splitmix64
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    // Noise, flat black and flat white in turn: overshoot only shows at edges.
    const uint64_t patch = (i % width / 7 + i / width / 5) % 4;
    const auto noise = static_cast<uint32_t>(z & 0xffffff);
    pixels[i] = 0xff000000u | (patch == 0 ? 0u : patch == 1 ? 0xffffffu : noise);
  }
  return pixels;
}

std::string fnv(std::span<const std::byte> bytes) {
  uint64_t value = 0xcbf29ce484222325u;
  for (const std::byte byte : bytes) value = (value ^ static_cast<uint64_t>(byte)) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::vector<uint8_t> rgb_of(std::span<const uint32_t> pixels) {
  std::vector<uint8_t> out;
  for (const uint32_t pixel : pixels) {
    for (uint32_t shift = 0; shift < 24; shift += 8) out.push_back(static_cast<uint8_t>(pixel >> shift));
  }
  return out;
}

std::vector<uint32_t> reference_rows(std::span<const ResamplePicture> pictures,
                                     std::span<const uint32_t> pixels, uint64_t blocks) {
  const uint64_t columns = pictures.front().columns.lines.size();
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

std::vector<uint32_t> reference_columns(std::span<const ResamplePicture> pictures,
                                        std::span<const uint32_t> x) {
  const uint64_t columns = pictures.front().columns.lines.size();
  std::vector<uint32_t> out;
  uint64_t block = 0;
  for (const ResamplePicture& picture : pictures) {
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

}  // namespace vitrine::test
