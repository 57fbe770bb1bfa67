// Smooth interpolation that never overshoots: a peak in the picture is a peak in the numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrine {

// A grid of numbers as a surface: through every number at its cell's centre, with continuous slope
// (Fritsch and Butland's monotone cubics, along rows first), constant outside the outermost centres.
class MonotoneSurface {
 public:
  // `columns_at` are the places along a row, in cells from the left edge, at which it will be evaluated.
  MonotoneSurface(std::span<const float> grid, uint32_t rows, uint32_t cols,
                  std::span<const double> columns_at);

  // The surface at one place along a column, in cells from the top, for all of columns_at.
  void row_at(double place, std::span<double> values) const;

 private:
  uint32_t rows_;
  size_t columns_;
  std::vector<double> values_, slopes_;  // [rows, columns_at]
};

}  // namespace vitrine
