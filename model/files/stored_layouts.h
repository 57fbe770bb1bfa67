// Numbers in the orders that files have them in, as the model takes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/graph/tensor.h"

namespace vitrine {

// Each row's vector added to each column's.
std::vector<float> sums_of(std::span<const float> rows, std::span<const float> columns, uint64_t dim);
// Some columns of rows.
std::vector<float> columns_of(std::span<const float> values, uint64_t width, uint64_t first, uint64_t count);
// [outputs, height, width, channels] as `shape`, [outputs, channels, height, width].
std::vector<float> channels_first(std::span<const float> values, const Shape& shape);
// [outputs, channels, frames, pixels] as [outputs, frames, channels, pixels].
std::vector<float> frames_first(std::span<const float> values, const std::vector<uint64_t>& stored);
// Of a tensor that is looked at as a matrix: all axes but the last.
uint64_t rows_of(const std::vector<uint64_t>& shape);

}  // namespace vitrine
