#include "runtime/check/reference_gradients.h"

namespace vitrine::reference {

Values pad(const Values& x, const Shape& shape, int axis, uint64_t begin, uint64_t size) {
  uint64_t outer = 1, inner = 1;
  const uint64_t own = shape[axis];
  for (int i = 0; i < static_cast<int>(shape.rank()); ++i) {
    if (i < axis) outer *= shape[i];
    if (i > axis) inner *= shape[i];
  }
  Values y(outer * size * inner);
  for (uint64_t o = 0; o < outer; ++o) {
    for (uint64_t a = 0; a < own; ++a) {
      for (uint64_t i = 0; i < inner; ++i)
        y[(o * size + begin + a) * inner + i] = x[(o * own + a) * inner + i];
    }
  }
  return y;
}

Values pool_gradient(const Values& dy, uint64_t dims, uint64_t tokens, uint64_t first, uint64_t count) {
  const uint64_t images = dy.size() / dims;
  Values dx(images * tokens * dims);
  for (uint64_t b = 0; b < images; ++b) {
    for (uint64_t t = first; t < first + count; ++t) {
      for (uint64_t d = 0; d < dims; ++d)
        dx[(b * tokens + t) * dims + d] = dy[b * dims + d] / static_cast<double>(count);
    }
  }
  return dx;
}

namespace {

// Calls look(element of the rows, element of the images) for each pixel that lies in a patch.
template <typename Look>
void each_pixel(const Shape& image, uint64_t height, uint64_t width, const Look& look) {
  uint64_t at = 0;
  for (uint64_t b = 0; b < image[0]; ++b) {
    for (uint64_t row = 0; row < image[2] / height; ++row) {
      for (uint64_t column = 0; column < image[3] / width; ++column) {
        for (uint64_t c = 0; c < image[1]; ++c) {
          for (uint64_t y = 0; y < height; ++y) {
            for (uint64_t x = 0; x < width; ++x) {
              const uint64_t down = row * height + y, across = column * width + x;
              look(at++, ((b * image[1] + c) * image[2] + down) * image[3] + across);
            }
          }
        }
      }
    }
  }
}

}  // namespace

Values unfold(const Values& image, const Shape& shape, uint64_t height, uint64_t width) {
  Values rows;
  each_pixel(shape, height, width, [&](uint64_t, uint64_t pixel) { rows.push_back(image[pixel]); });
  return rows;
}

Values fold(const Values& rows, const Shape& image_shape, uint64_t height, uint64_t width) {
  Values image(image_shape.elements());
  each_pixel(image_shape, height, width, [&](uint64_t at, uint64_t pixel) { image[pixel] = rows[at]; });
  return image;
}

Values weight_gradient(const Values& dy, const Values& x, uint64_t groups, uint64_t n, uint64_t k,
                       uint64_t rows) {
  Values dw(groups * n * k);
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t g = 0; g < groups; ++g) {
      for (uint64_t i = 0; i < n; ++i) {
        for (uint64_t j = 0; j < k; ++j)
          dw[(g * n + i) * k + j] += dy[(row * groups + g) * n + i] * x[(row * groups + g) * k + j];
      }
    }
  }
  return dw;
}

TokenGradients assemble_tokens_gradient(const Values& dy, const Shape& shape, const TokenCounts& counts) {
  const uint64_t images = shape[0], tokens = shape[1], dims = shape[2];
  const uint64_t special = uint64_t{counts.class_token} + uint64_t{counts.distillation_token};
  const uint64_t prefix = special + counts.registers;
  TokenGradients result;
  if (counts.class_token) result.class_token.resize(dims);
  if (counts.distillation_token) result.distillation_token.resize(dims);
  result.registers.resize(counts.registers * dims);
  result.positions.resize(counts.positions * dims);
  for (uint64_t b = 0; b < images; ++b) {
    uint64_t position = 0;
    for (uint64_t t = 0; t < tokens; ++t) {
      const bool is_register = t >= special && t < prefix;
      const bool has_position = counts.positions == tokens ||
                                (!is_register && counts.positions == tokens - counts.registers) ||
                                t >= prefix;
      for (uint64_t d = 0; d < dims; ++d) {
        const double value = dy[(b * tokens + t) * dims + d];
        if (t >= prefix) {
          result.patches.push_back(value);
        } else if (is_register) {
          result.registers[(t - special) * dims + d] += value;
        } else if (t == 0 && counts.class_token) {
          result.class_token[d] += value;
        } else {
          result.distillation_token[d] += value;
        }
        if (counts.positions && has_position) result.positions[position * dims + d] += value;
      }
      if (has_position) ++position;
    }
  }
  return result;
}

}  // namespace vitrine::reference
