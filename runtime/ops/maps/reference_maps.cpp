#include "runtime/ops/maps/reference_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace vitrine::reference {
namespace {

// Calls look(image, window, tap, pixel) for each pixel of each window, in order, with the pixel's number on
// its map; none where it lies beyond the edges.
template <typename Look>
void each_tap(const Windows& w, uint64_t images, const Look& look) {
  for (uint64_t image = 0; image < images; ++image) {
    for (uint64_t window = 0; window < w.rows * w.columns; ++window) {
      for (uint64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
        const auto place = [](uint64_t at, uint64_t stride, uint64_t within, uint64_t front) {
          return static_cast<int64_t>(at * stride + within) - static_cast<int64_t>(front);
        };
        const int64_t down = place(window / w.columns, w.stride_y, tap / w.kernel_width, w.top);
        const int64_t across = place(window % w.columns, w.stride_x, tap % w.kernel_width, w.left);
        const bool inside = down >= 0 && across >= 0 && down < static_cast<int64_t>(w.height) &&
                            across < static_cast<int64_t>(w.width);
        look(image, window, tap,
             inside ? std::optional(static_cast<uint64_t>(down) * w.width + static_cast<uint64_t>(across))
                    : std::nullopt);
      }
    }
  }
}

uint64_t images_of(const Values& x, const Windows& w, uint64_t channels) {
  return x.size() / (w.height * w.width * channels);
}

}  // namespace

Values neighbourhoods(const Values& x, const Windows& w, uint64_t channels, bool planar) {
  const uint64_t pixels = w.height * w.width;
  Values rows;
  each_tap(w, images_of(x, w, channels),
           [&](uint64_t image, uint64_t, uint64_t, const std::optional<uint64_t>& pixel) {
             for (uint64_t c = 0; c < channels; ++c) {
               rows.push_back(!pixel   ? 0
                              : planar ? x[(image * channels + c) * pixels + *pixel]
                                       : x[(image * pixels + *pixel) * channels + c]);
             }
           });
  return rows;
}

Values convolution(const Values& x, const Values& weight, const Windows& w, uint64_t channels,
                   uint64_t outputs) {
  const uint64_t images = images_of(x, w, channels), taps = w.kernel_height * w.kernel_width;
  Values y(images * w.rows * w.columns * outputs);
  each_tap(w, images,
           [&](uint64_t image, uint64_t window, uint64_t tap, const std::optional<uint64_t>& pixel) {
             if (!pixel) return;
             for (uint64_t o = 0; o < outputs; ++o) {
               for (uint64_t c = 0; c < channels; ++c)
                 y[(image * w.rows * w.columns + window) * outputs + o] +=
                     x[(image * w.height * w.width + *pixel) * channels + c] *
                     weight[(o * taps + tap) * channels + c];
             }
           });
  return y;
}

Values pool_windows(const Values& x, const Windows& w, uint64_t channels, bool mean) {
  const uint64_t images = images_of(x, w, channels), windows = w.rows * w.columns;
  Values y(images * windows * channels, mean ? 0 : -std::numeric_limits<double>::infinity());
  Values seen(images * windows);
  each_tap(w, images, [&](uint64_t image, uint64_t window, uint64_t, const std::optional<uint64_t>& pixel) {
    if (!pixel) return;
    seen[image * windows + window] += 1;
    for (uint64_t c = 0; c < channels; ++c) {
      double& result = y[(image * windows + window) * channels + c];
      const double value = x[(image * w.height * w.width + *pixel) * channels + c];
      if (mean) {
        result += value;
      } else if (std::isnan(value) || value > result) {
        result = value;
      }
    }
  });
  for (size_t i = 0; mean && i < y.size(); ++i) y[i] /= seen[i / channels];
  return y;
}

Values group_norm(const Values& x, const Shape& shape, uint64_t groups, const Values& gamma,
                  const Values& beta, double eps, Activation activation) {
  const uint64_t pixels = shape[1], channels = shape[2], width = channels / groups;
  Values y(x.size());
  for (uint64_t image = 0; image < shape[0]; ++image) {
    for (uint64_t group = 0; group < groups; ++group) {
      const auto each = [&](const auto& look) {
        for (uint64_t pixel = 0; pixel < pixels; ++pixel) {
          for (uint64_t c = group * width; c < (group + 1) * width; ++c)
            look((image * pixels + pixel) * channels + c, c);
        }
      };
      double mean = 0, variance = 0;
      const auto count = static_cast<double>(pixels * width);
      each([&](uint64_t at, uint64_t) { mean += x[at]; });
      mean /= count;
      each([&](uint64_t at, uint64_t) { variance += (x[at] - mean) * (x[at] - mean); });
      variance /= count;
      each([&](uint64_t at, uint64_t c) {
        y[at] = activate(activation, (x[at] - mean) / std::sqrt(variance + eps) * gamma[c] + beta[c]);
      });
    }
  }
  return y;
}

}  // namespace vitrine::reference
