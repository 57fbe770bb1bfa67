#include "runtime/ops/moves/reference_grid.h"

namespace vitrine::reference {
namespace {

// Calls `each` with the place of every token in the tokens, and with that in the windows.
template <typename Each>
void for_each_token(uint64_t batch, const TokenGrid& grid, Each each) {
  const uint64_t window = grid.window, per_image = grid.windows();
  for (uint64_t b = 0; b < batch; ++b) {
    for (uint64_t y = 0; y < grid.height; ++y) {
      for (uint64_t x = 0; x < grid.width; ++x) {
        const uint64_t in_image = y / window * grid.window_columns() + x / window;
        const uint64_t in_window = y % window * window + x % window;
        each((b * grid.height + y) * grid.width + x,
             (b * per_image + in_image) * window * window + in_window);
      }
    }
  }
}

}  // namespace

Values grid_bias(const Values& q, const Shape& shape, const Values& rows, const Values& columns,
                 const GridBiasOptions& o) {
  const uint64_t batch = shape[0], tokens = shape[1], stride = shape[2];
  Values out;
  out.reserve(batch * o.heads * tokens * (o.height + o.width));
  for (uint64_t b = 0; b < batch; ++b) {
    for (uint64_t head = 0; head < o.heads; ++head) {
      for (uint64_t n = 0; n < tokens; ++n) {
        const auto times = [&](const Values& table, uint64_t row) {
          double sum = 0;
          for (uint64_t i = 0; i < o.key_width; ++i)
            sum += q[(b * tokens + n) * stride + o.q_offset + head * o.key_width + i] *
                   table[row * o.key_width + i];
          return sum;
        };
        for (uint64_t k = 0; k < o.height; ++k) out.push_back(times(rows, n / o.width + o.height - 1 - k));
        for (uint64_t k = 0; k < o.width; ++k) out.push_back(times(columns, n % o.width + o.width - 1 - k));
      }
    }
  }
  return out;
}

Values partition_windows(const Values& x, uint64_t batch, uint64_t columns, const TokenGrid& grid) {
  Values out(batch * grid.windows() * grid.window * grid.window * columns, 0.0);
  for_each_token(batch, grid, [&](uint64_t token, uint64_t place) {
    for (uint64_t i = 0; i < columns; ++i) out[place * columns + i] = x[token * columns + i];
  });
  return out;
}

Values merge_windows(const Values& x, uint64_t batch, uint64_t columns, const TokenGrid& grid) {
  Values out(batch * grid.height * grid.width * columns);
  for_each_token(batch, grid, [&](uint64_t token, uint64_t place) {
    for (uint64_t i = 0; i < columns; ++i) out[token * columns + i] = x[place * columns + i];
  });
  return out;
}

}  // namespace vitrine::reference
