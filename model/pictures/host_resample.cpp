#include "model/pictures/host_resample.h"

#include <algorithm>
#include <array>

#include "shaders/pictures/resample.h"

namespace vitrine {
namespace {

using Sums = std::array<int32_t, 3>;
constexpr int32_t half_unit = 1 << (VITRINE_RESAMPLE_PRECISION - 1);

void add(Sums& sums, uint32_t pixel, int32_t weight) {
  for (uint32_t c = 0; c < 3; ++c) sums[c] += static_cast<int32_t>(pixel >> (8 * c) & 255) * weight;
}

uint32_t packed(const Sums& sums) {
  uint32_t pixel = 0xff000000;
  for (uint32_t c = 0; c < 3; ++c) {
    const int32_t value = std::clamp(sums[c] >> VITRINE_RESAMPLE_PRECISION, 0, 255);
    pixel |= static_cast<uint32_t>(value) << (8 * c);
  }
  return pixel;
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

std::vector<uint32_t> resample_on_host(std::span<const uint32_t> pixels, uint32_t width,
                                       const PreparedPicture& prepared) {
  const ResampleTaps& columns = prepared.resample.columns;
  const ResampleTaps& rows = prepared.resample.rows;
  const size_t across = columns.lines.size();
  std::vector<uint32_t> out(rows.lines.size() * across, prepared.resample.fill);
  // The source rows that the result row at hand is made of: row r in line r % lines. Result rows ask for rows
  // further and further down, so that none is made twice.
  uint32_t lines = 1;
  for (size_t y = rows.begin; y < rows.end; ++y) lines = std::max(lines, rows.lines[y].count);
  std::vector<uint32_t> kept(lines * across);
  const auto line_of = [&](uint32_t row) { return std::span(kept).subspan(row % lines * across, across); };
  const auto make = [&](uint32_t row) {
    const auto source = pixels.subspan((uint64_t{prepared.top} + row) * width + prepared.left);
    const auto line = line_of(row);
    for (size_t x = columns.begin; x < columns.end; ++x) {
      const ResampleTaps::Line& column = columns.lines[x];
      Sums sums{half_unit, half_unit, half_unit};
      for (uint32_t k = 0; k < column.count; ++k)
        add(sums, source[column.first + k], columns.weights[column.weight + k]);
      line[x] = packed(sums);
    }
  };
  uint32_t made = 0;  // rows below it
  std::vector<Sums> sums(across);
  for (size_t y = rows.begin; y < rows.end; ++y) {
    const ResampleTaps::Line& row = rows.lines[y];
    std::ranges::fill(sums, Sums{half_unit, half_unit, half_unit});
    for (made = std::max(made, row.first); made < row.first + row.count; ++made) make(made);
    for (uint32_t k = 0; k < row.count; ++k) {
      const auto line = line_of(row.first + k);
      const int32_t weight = rows.weights[row.weight + k];
      for (size_t x = columns.begin; x < columns.end; ++x) add(sums[x], line[x], weight);
    }
    for (size_t x = columns.begin; x < columns.end; ++x) out[y * across + x] = packed(sums[x]);
  }
  return out;
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
