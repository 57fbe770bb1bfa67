#include "model/pictures/host_resample.h"

#include <algorithm>
#include <cstring>

#include "runtime/util/wide.h"
#include "shaders/pictures/resample.h"

namespace vitrine {
namespace {

constexpr int32_t half_unit = 1 << (VITRINE_RESAMPLE_PRECISION - 1);

uint8_t byte_of(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> VITRINE_RESAMPLE_PRECISION, 0, 255));
}

// Columns [begin, end) of one row of four bytes a pixel. Alpha is summed up like the others, and not looked
// at.
void resize_row(const uint8_t* source, const ResampleTaps& columns, uint8_t* out) {
  for (size_t x = columns.begin; x < columns.end; ++x) {
    const ResampleTaps::Line line = columns.lines[x];
    int32_t sums[4] = {half_unit, half_unit, half_unit, half_unit};
    const uint8_t* from = source + 4 * size_t{line.first};
    for (uint32_t k = 0; k < line.count; ++k) {
      const int32_t weight = columns.weights[line.weight + k];
      for (size_t c = 0; c < 4; ++c) sums[c] += from[4 * k + c] * weight;
    }
    for (size_t c = 0; c < 4; ++c) out[4 * x + c] = byte_of(sums[c]);
  }
}

#ifdef VITRINE_AVX2
// Weights as processors multiply them best: two neighbours' upper and lower parts in 16 bits each, w = 2^11
// upper + lower.
struct PairedTaps {
  static constexpr int lower_bits = 11;
  struct Line {
    uint32_t first = 0, pairs = 0, at = 0;  // whole pairs; an odd weight lies behind them
    bool odd = false;
  };
  std::vector<Line> lines;
  std::vector<uint32_t> upper, lower;
  uint32_t begin = 0, end = 0;

  explicit PairedTaps(const ResampleTaps& taps) : begin(taps.begin), end(taps.end) {
    lines.reserve(taps.lines.size());
    for (const ResampleTaps::Line& line : taps.lines) {
      lines.push_back({line.first, line.count / 2, static_cast<uint32_t>(upper.size()), line.count % 2 != 0});
      for (uint32_t k = 0; k < line.count; k += 2) {
        const int32_t one = taps.weights[line.weight + k],
                      other = k + 1 < line.count ? taps.weights[line.weight + k + 1] : 0;
        upper.push_back(paired(one >> lower_bits, other >> lower_bits));
        lower.push_back(paired(one & ((1 << lower_bits) - 1), other & ((1 << lower_bits) - 1)));
      }
    }
  }

 private:
  static uint32_t paired(int32_t one, int32_t other) {
    return static_cast<uint32_t>(one & 0xffff) | static_cast<uint32_t>(other) << 16;
  }
};

// The pixel that the sums of either half come to, of four bytes: every packing saturates, to 0 and 255 in the
// end.
VITRINE_AVX2 inline void store_pixels(__m256i upper, __m256i lower, uint8_t* first, uint8_t* second) {
  const __m256i sums = _mm256_srai_epi32(
      _mm256_add_epi32(_mm256_slli_epi32(upper, PairedTaps::lower_bits), lower), VITRINE_RESAMPLE_PRECISION);
  const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(sums, sums), sums);
  const int32_t one = _mm_cvtsi128_si32(_mm256_castsi256_si128(packed)),
                other = _mm_cvtsi128_si32(_mm256_extracti128_si256(packed, 1));
  std::memcpy(first, &one, 4);
  std::memcpy(second, &other, 4);
}

// Two rows at once, one in each half of the registers.
VITRINE_AVX2 void resize_two_rows(const uint8_t* one, const uint8_t* other, const PairedTaps& columns,
                                  uint8_t* out_one, uint8_t* out_other) {
  const __m256i by_channel = _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1,  //
                                              0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
  for (size_t x = columns.begin; x < columns.end; ++x) {
    const PairedTaps::Line line = columns.lines[x];
    const uint8_t *a = one + 4 * size_t{line.first}, *b = other + 4 * size_t{line.first};
    __m256i upper = _mm256_setzero_si256(), lower = _mm256_set1_epi32(half_unit);
    const auto add = [&](__m128i of_one, __m128i of_other,
                         uint32_t at) __attribute__((target("avx2"), always_inline)) {
      const __m256i pixels = _mm256_shuffle_epi8(
          _mm256_inserti128_si256(_mm256_castsi128_si256(of_one), of_other, 1), by_channel);
      upper = _mm256_add_epi32(
          upper, _mm256_madd_epi16(pixels, _mm256_set1_epi32(static_cast<int32_t>(columns.upper[at]))));
      lower = _mm256_add_epi32(
          lower, _mm256_madd_epi16(pixels, _mm256_set1_epi32(static_cast<int32_t>(columns.lower[at]))));
    };
    for (uint32_t k = 0; k < line.pairs; ++k) {
      add(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(a + 8 * size_t{k})),
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b + 8 * size_t{k})), line.at + k);
    }
    if (line.odd) {
      int32_t last_one = 0, last_other = 0;
      std::memcpy(&last_one, a + 8 * size_t{line.pairs}, 4);
      std::memcpy(&last_other, b + 8 * size_t{line.pairs}, 4);
      add(_mm_cvtsi32_si128(last_one), _mm_cvtsi32_si128(last_other), line.at + line.pairs);
    }
    store_pixels(upper, lower, out_one + 4 * x, out_other + 4 * x);
  }
}

// One result row of the made rows that its line weighs: the bytes [0, count / 8 * 8). An odd row is paired
// with itself.
VITRINE_AVX2 void add_up_rows(std::span<const uint8_t* const> rows, const PairedTaps& taps,
                              const PairedTaps::Line& line, size_t count, uint8_t* out) {
  const uint32_t pairs = line.pairs + line.odd;
  for (size_t i = 0; i + 8 <= count; i += 8) {
    __m256i upper = _mm256_setzero_si256(), lower = _mm256_set1_epi32(half_unit);
    for (uint32_t k = 0; k < pairs; ++k) {
      const uint8_t *one = rows[2 * k], *other = rows[std::min<size_t>(2 * k + 1, rows.size() - 1)];
      const __m256i bytes = _mm256_cvtepu8_epi16(
          _mm_unpacklo_epi8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(one + i)),
                            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(other + i))));
      upper = _mm256_add_epi32(
          upper, _mm256_madd_epi16(bytes, _mm256_set1_epi32(static_cast<int32_t>(taps.upper[line.at + k]))));
      lower = _mm256_add_epi32(
          lower, _mm256_madd_epi16(bytes, _mm256_set1_epi32(static_cast<int32_t>(taps.lower[line.at + k]))));
    }
    store_pixels(upper, lower, out + i, out + i + 4);
  }
}
#endif

void add_row(const uint8_t* row, int32_t weight, size_t count, int32_t* sums) {
  for (size_t i = 0; i < count; ++i) sums[i] += row[i] * weight;
}

void pack_row(const int32_t* sums, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = byte_of(sums[i]);
}

ResampleTaps unchanged(uint32_t size) {
  ResampleTaps taps;
  taps.end = size;
  for (uint32_t i = 0; i < size; ++i) {
    taps.lines.push_back({i, 1, i});
    taps.weights.push_back(1 << VITRINE_RESAMPLE_PRECISION);
  }
  return taps;
}

}  // namespace

void resample_on_host(std::span<const uint8_t> pixels, uint32_t width, const PreparedPicture& prepared,
                      std::vector<uint32_t>& out, [[maybe_unused]] bool plain) {
  const ResampleTaps& columns = prepared.resample.columns;
  const ResampleTaps& rows = prepared.resample.rows;
  const size_t across = columns.lines.size(), bytes = 4 * across;
  out.assign(rows.lines.size() * across, prepared.resample.fill);
  // The source rows that the result row at hand is made of: row r in line r % lines. Result rows ask for rows
  // further and further down, so that none is made twice; two are made at a time.
  uint32_t lines = 1;
  for (size_t y = rows.begin; y < rows.end; ++y) lines = std::max(lines, rows.lines[y].count + 1);
  std::vector<uint8_t> kept(lines * bytes);
  const auto line_of = [&](uint32_t row) { return kept.data() + row % lines * bytes; };
  const auto source_of = [&](uint32_t row) {
    return pixels.subspan(4 * ((uint64_t{prepared.top} + row) * width + prepared.left)).data();
  };
#ifdef VITRINE_AVX2
  const bool by_two = !plain && has_avx2();
  const PairedTaps paired(by_two ? columns : ResampleTaps()), paired_rows(by_two ? rows : ResampleTaps());
  std::vector<const uint8_t*> weighed;
#endif
  uint32_t made = 0;  // rows below it
  const auto make = [&] {
#ifdef VITRINE_AVX2
    if (by_two && made + 1 < prepared.resample.height) {
      resize_two_rows(source_of(made), source_of(made + 1), paired, line_of(made), line_of(made + 1));
      made += 2;
      return;
    }
#endif
    resize_row(source_of(made), columns, line_of(made));
    ++made;
  };
  const size_t first = 4 * size_t{columns.begin}, count = 4 * size_t{columns.end - columns.begin};
  std::vector<int32_t> sums(count);
  for (size_t y = rows.begin; y < rows.end; ++y) {
    const ResampleTaps::Line& row = rows.lines[y];
    made = std::max(made, row.first);
    while (made < row.first + row.count) make();
    uint32_t* result = out.data() + y * across + columns.begin;
    size_t done = 0;  // of its bytes
#ifdef VITRINE_AVX2
    if (by_two) {
      weighed.clear();
      for (uint32_t k = 0; k < row.count; ++k) weighed.push_back(line_of(row.first + k) + first);
      add_up_rows(weighed, paired_rows, paired_rows.lines[y], count, reinterpret_cast<uint8_t*>(result));
      done = count / 8 * 8;
    }
#endif
    std::ranges::fill(std::span(sums).subspan(done), half_unit);
    for (uint32_t k = 0; k < row.count; ++k)
      run_widely<add_row>(line_of(row.first + k) + first + done, rows.weights[row.weight + k], count - done,
                          sums.data() + done);
    run_widely<pack_row>(sums.data() + done, count - done, reinterpret_cast<uint8_t*>(result) + done);
    for (size_t x = 0; x < count / 4; ++x) result[x] |= 0xff000000;
  }
}

PreparedPicture unchanged_picture(uint32_t height, uint32_t width) {
  PreparedPicture prepared;
  prepared.resample.width = width;
  prepared.resample.height = height;
  prepared.resample.columns = unchanged(width);
  prepared.resample.rows = unchanged(height);
  return prepared;
}

}  // namespace vitrine
