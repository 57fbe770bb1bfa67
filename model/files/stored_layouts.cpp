#include "model/files/stored_layouts.h"

namespace vitrine {

std::vector<float> sums_of(std::span<const float> rows, std::span<const float> columns, uint64_t dim) {
  std::vector<float> sums;
  sums.reserve(rows.size() / dim * columns.size());
  for (size_t row = 0; row < rows.size(); row += dim) {
    for (size_t i = 0; i < columns.size(); ++i) sums.push_back(rows[row + i % dim] + columns[i]);
  }
  return sums;
}

std::vector<float> columns_of(std::span<const float> values, uint64_t width, uint64_t first, uint64_t count) {
  std::vector<float> columns;
  columns.reserve(values.size() / width * count);
  for (size_t row = 0; row < values.size(); row += width) {
    const auto part = values.subspan(row + first, count);
    columns.insert(columns.end(), part.begin(), part.end());
  }
  return columns;
}

std::vector<float> channels_first(std::span<const float> values, const Shape& shape) {
  const uint64_t channels = shape[1], pixels = shape[2] * shape[3];
  std::vector<float> turned(values.size());
  for (uint64_t output = 0; output < shape[0]; ++output) {
    for (uint64_t pixel = 0; pixel < pixels; ++pixel) {
      for (uint64_t channel = 0; channel < channels; ++channel)
        turned[(output * channels + channel) * pixels + pixel] =
            values[(output * pixels + pixel) * channels + channel];
    }
  }
  return turned;
}

std::vector<float> frames_first(std::span<const float> values, const std::vector<uint64_t>& stored) {
  const uint64_t channels = stored[1], frames = stored[2], pixels = stored[3] * stored[4];
  std::vector<float> turned(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t pixel = i % pixels, frame = i / pixels % frames, channel = i / pixels / frames % channels;
    const uint64_t output = i / pixels / frames / channels;
    turned[((output * frames + frame) * channels + channel) * pixels + pixel] = values[i];
  }
  return turned;
}

uint64_t rows_of(const std::vector<uint64_t>& shape) {
  uint64_t rows = shape.front();
  for (size_t axis = 1; axis + 1 < shape.size(); ++axis) rows *= shape[axis];
  return rows;
}

}  // namespace vitrine
