#include "runtime/ops/pictures/host_operation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "runtime/ops/pictures/reference_operation.h"
#include "runtime/util/wide.h"

namespace vitrine {
namespace {

using Kind = PictureOperationKind;

constexpr uint32_t opaque = 0xff000000;

// What each byte of a picture becomes, three channels side by side.
void look_up(std::span<const uint32_t> table, std::span<uint32_t> pixels) {
  for (uint32_t& pixel : pixels) {
    pixel = (table[pixel & 255] & 0xff) | (table[pixel >> 8 & 255] & 0xff00) |
            (table[pixel >> 16 & 255] & 0xff0000) | opaque;
  }
}

// Between a grey and the color itself, as ImageEnhance.Color blends them.
void blend_with_grey(uint32_t* pixels, size_t count, float alpha) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t pixel = pixels[i];
    const int32_t r = pixel & 255, g = pixel >> 8 & 255, b = pixel >> 16 & 255;
    const int32_t grey = (r * 19595 + g * 38470 + b * 7471 + 32768) >> 16;
    const auto blended = [&](int32_t c) {
      const float value = static_cast<float>(grey) + alpha * static_cast<float>(c - grey);
      return static_cast<uint32_t>(static_cast<int32_t>(std::min(std::max(value, 0.0f), 255.0f)));
    };
    pixels[i] = blended(r) | blended(g) << 8 | blended(b) << 16 | opaque;
  }
}

// A row between its smoothed self and itself, bytes by bytes: four a pixel. ImageFilter.SMOOTH in
// thirteenths, that never come halfway between two bytes.
void sharpen_row(const uint8_t* above, const uint8_t* own, const uint8_t* below, size_t bytes, float alpha,
                 uint8_t* out) {
  for (size_t i = 4; i + 4 < bytes; ++i) {
    const int32_t around = above[i - 4] + above[i] + above[i + 4] + own[i - 4] + own[i] + own[i + 4] +
                           below[i - 4] + below[i] + below[i + 4];
    // Twice the sum and 13 by 26 is at most 255: a product and a shift divide it.
    const int32_t smooth = (2 * (4 * own[i] + around) + 13) * 40330 >> 20;
    const float value =
        static_cast<float>(smooth) + alpha * static_cast<float>(static_cast<int32_t>(own[i]) - smooth);
    out[i] = static_cast<uint8_t>(static_cast<int32_t>(std::min(std::max(value, 0.0f), 255.0f)));
  }
}

// The outermost pixels are not smoothed, and what is blended with itself stays.
void sharpen(std::vector<uint32_t>& pixels, uint32_t width, uint32_t height, float alpha,
             std::vector<uint32_t>& source) {
  if (width < 3 || height < 3) return;
  source = pixels;
  const auto row = [&](uint32_t y) {
    return reinterpret_cast<const uint8_t*>(source.data() + size_t{y} * width);
  };
  for (uint32_t y = 1; y + 1 < height; ++y) {
    run_widely<sharpen_row>(row(y - 1), row(y), row(y + 1), size_t{4} * width, alpha,
                            reinterpret_cast<uint8_t*>(pixels.data() + size_t{y} * width));
  }
  for (uint32_t& pixel : pixels) pixel |= opaque;
}

struct Source {
  const uint8_t* bytes;
  int32_t width, height;

  const uint8_t* at(int32_t x, int32_t y) const {
    return bytes + 4 * (static_cast<size_t>(std::clamp(y, 0, height - 1)) * static_cast<size_t>(width) +
                        static_cast<size_t>(std::clamp(x, 0, width - 1)));
  }
};

#ifdef VITRINE_AVX2
// Through four numbers, one of each row or column, at the share `d` between the inner two; the order of
// operations is Pillow's.
VITRINE_AVX2 inline __m256d cubic(__m256d a, __m256d b, __m256d c, __m256d e, __m256d d) {
  const __m256d p2 = _mm256_sub_pd(c, a), a_b = _mm256_sub_pd(a, b),
                p3 = _mm256_sub_pd(_mm256_add_pd(_mm256_add_pd(a_b, a_b), c), e),
                p4 = _mm256_add_pd(_mm256_sub_pd(_mm256_sub_pd(b, a), c), e);
  return _mm256_add_pd(
      b, _mm256_mul_pd(d, _mm256_add_pd(p2, _mm256_mul_pd(d, _mm256_add_pd(p3, _mm256_mul_pd(d, p4))))));
}

VITRINE_AVX2 inline __m256d between(__m256d a, __m256d b, __m256d d) {
  return _mm256_add_pd(a, _mm256_mul_pd(_mm256_sub_pd(b, a), d));
}

VITRINE_AVX2 inline __m256d channels_of(const uint8_t* pixel) {
  int32_t bytes = 0;
  std::memcpy(&bytes, pixel, sizeof bytes);
  return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}

// The color between the pixels around a place: `at` gives that of one of them, counted from the one left of
// and above the place. At a share of 0 what lies between is the first of the two to the bit: shears and
// shifts move along rows alone, or along columns.
VITRINE_AVX2 inline __m256d color_at(const auto& at, bool smoothest, double share_x, double share_y) {
  const __m256d dx = _mm256_set1_pd(share_x), dy = _mm256_set1_pd(share_y);
  const auto along = [&](int32_t row) __attribute__((target("avx2"), always_inline)) {
    if (share_x == 0) return at(row, 0);
    return smoothest ? cubic(at(row, -1), at(row, 0), at(row, 1), at(row, 2), dx)
                     : between(at(row, 0), at(row, 1), dx);
  };
  if (share_y == 0) return along(0);
  return smoothest ? cubic(along(-1), along(0), along(1), along(2), dy) : between(along(0), along(1), dy);
}

// A row moved by a filter that makes a pixel of those around a place, four channels at a time.
VITRINE_AVX2 void move_row_smoothly(const PictureOperation& operation, const Source& source, int32_t y,
                                    uint32_t* out) {
  const AffineMatrix& m = operation.matrix;
  const bool smoothest = operation.kind == Kind::bicubic;
  const ptrdiff_t stride = 4 * ptrdiff_t{source.width};
  for (int32_t x = 0; x < source.width; ++x) {
    const double middle_x = x + 0.5, middle_y = y + 0.5;
    double from_x = m[0] * middle_x + m[1] * middle_y + m[2],
           from_y = m[3] * middle_x + m[4] * middle_y + m[5];
    if (!(from_x >= 0 && from_x < source.width && from_y >= 0 && from_y < source.height)) {
      out[x] = operation.fill;
      continue;
    }
    from_x -= 0.5;
    from_y -= 0.5;
    const auto left = static_cast<int32_t>(std::floor(from_x)),
               top = static_cast<int32_t>(std::floor(from_y));
    __m256d value;
    if (left >= 1 && left + 2 < source.width && top >= 1 && top + 2 < source.height) {
      const uint8_t* here = source.at(left, top);
      const auto at = [&](int32_t row, int32_t column) __attribute__((target("avx2"), always_inline)) {
        return channels_of(here + row * stride + 4 * column);
      };
      value = color_at(at, smoothest, from_x - left, from_y - top);
    } else {
      const auto at = [&](int32_t row, int32_t column) __attribute__((target("avx2"), always_inline)) {
        return channels_of(source.at(left + column, top + row));
      };
      value = color_at(at, smoothest, from_x - left, from_y - top);
    }
    value = _mm256_min_pd(_mm256_max_pd(value, _mm256_setzero_pd()), _mm256_set1_pd(255));
    const __m128i whole = _mm256_cvttpd_epi32(value), halves = _mm_packus_epi32(whole, whole);
    out[x] = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(halves, halves))) | opaque;
  }
}
#endif

// Pillow's fixed point of 16 bits.
void move_row_nearest(const PictureOperation& operation, const Source& source, int32_t y, uint32_t* out) {
  const AffineMatrix& m = operation.matrix;
  const auto fixed = [](double value) { return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5)); };
  const int64_t step_x = fixed(m[0]), step_y = fixed(m[3]);
  int64_t from_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5) + fixed(m[1]) * y,
          from_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5) + fixed(m[4]) * y;
  for (int32_t x = 0; x < source.width; ++x, from_x += step_x, from_y += step_y) {
    const int64_t column = from_x >> 16, row = from_y >> 16;
    if (column < 0 || column >= source.width || row < 0 || row >= source.height) {
      out[x] = operation.fill;
      continue;
    }
    const uint8_t* from = source.at(static_cast<int32_t>(column), static_cast<int32_t>(row));
    out[x] = static_cast<uint32_t>(from[0]) | static_cast<uint32_t>(from[1]) << 8 |
             static_cast<uint32_t>(from[2]) << 16 | opaque;
  }
}

void move(const PictureOperation& operation, std::vector<uint32_t>& pixels, uint32_t width, uint32_t height,
          std::vector<uint32_t>& before) {
  // It refuses matrices that take places too far.
  std::array<uint32_t, VITRINE_OPERATION_WORDS> words;
  write_operation(operation, width, height, words);
  auto row = operation.kind == Kind::nearest ? move_row_nearest : nullptr;
#ifdef VITRINE_AVX2
  if (!row && has_avx2()) row = move_row_smoothly;
#endif
  if (!row) {
    pixels = reference::operation_result(operation, pixels, width, height);
    return;
  }
  before = pixels;
  const Source source{reinterpret_cast<const uint8_t*>(before.data()), static_cast<int32_t>(width),
                      static_cast<int32_t>(height)};
  for (uint32_t y = 0; y < height; ++y)
    row(operation, source, static_cast<int32_t>(y), pixels.data() + size_t{y} * width);
}

}  // namespace

void apply_on_host(const PictureOperation& operation, std::vector<uint32_t>& pixels, uint32_t width,
                   uint32_t height, std::vector<uint32_t>& memory) {
  switch (operation.kind) {
    case Kind::none:
      return;
    case Kind::color:
      return run_widely<blend_with_grey>(pixels.data(), pixels.size(), static_cast<float>(operation.factor));
    case Kind::sharpness:
      return sharpen(pixels, width, height, static_cast<float>(operation.factor), memory);
    case Kind::nearest:
    case Kind::bilinear:
    case Kind::bicubic:
      return move(operation, pixels, width, height, memory);
    case Kind::hue:
      pixels = reference::operation_result(operation, pixels, width, height);
      return;
    default:
      look_up(reference::operation_table(operation, pixels), pixels);
  }
}

}  // namespace vitrine
