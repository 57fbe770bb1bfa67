#include "runtime/ops/maps/windows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/ops/lowering.h"

namespace vitrine {
namespace {

struct Field {
  std::string_view name;
  uint64_t Windows::* member;
};
constexpr std::array<Field, 10> fields{{{"height", &Windows::height},
                                        {"width", &Windows::width},
                                        {"kernel_height", &Windows::kernel_height},
                                        {"kernel_width", &Windows::kernel_width},
                                        {"stride_y", &Windows::stride_y},
                                        {"stride_x", &Windows::stride_x},
                                        {"top", &Windows::top},
                                        {"left", &Windows::left},
                                        {"rows", &Windows::rows},
                                        {"columns", &Windows::columns}}};

// The windows on one axis: how many, and how many pixels are in front.
using Axis = std::pair<uint64_t, uint64_t>;

Axis same_axis(uint64_t size, uint64_t kernel, uint64_t stride) {
  const uint64_t count = (size + stride - 1) / stride, covered = (count - 1) * stride + kernel;
  return {count, covered > size ? (covered - size) / 2 : 0};
}

std::string text_of(uint64_t height, uint64_t width) {
  return std::to_string(height) + " x " + std::to_string(width);
}

}  // namespace

bool Windows::are_pixels() const { return *this == padded_windows(height, width, 1, 1, 0); }

Windows padded_windows(uint64_t height, uint64_t width, uint64_t kernel, uint64_t stride, uint64_t padding) {
  const auto count = [&](uint64_t size) {
    return size + 2 * padding < kernel ? 0 : (size + 2 * padding - kernel) / stride + 1;
  };
  return {height, width, kernel, kernel, stride, stride, padding, padding, count(height), count(width)};
}

Windows same_windows(uint64_t height, uint64_t width, uint64_t kernel, uint64_t stride) {
  const Axis down = same_axis(height, kernel, stride), across = same_axis(width, kernel, stride);
  return {height, width,       kernel,        kernel,     stride,
          stride, down.second, across.second, down.first, across.first};
}

Windows covering_windows(uint64_t height, uint64_t width, uint64_t window_height, uint64_t window_width) {
  return {.height = height,
          .width = width,
          .kernel_height = window_height,
          .kernel_width = window_width,
          .stride_y = window_height,
          .stride_x = window_width,
          .rows = (height + window_height - 1) / window_height,
          .columns = (width + window_width - 1) / window_width};
}

void set_windows(Attributes& attributes, const Windows& windows) {
  for (const Field& field : fields) attributes.set(field.name, static_cast<int64_t>(windows.*field.member));
}

Windows windows_of(const Attributes& attributes) {
  Windows windows;
  for (const Field& field : fields)
    windows.*field.member = static_cast<uint64_t>(attributes.integer(field.name));
  return windows;
}

uint64_t require_windows(InferContext& c, const Windows& w, bool planar) {
  const Value& x = c.input(0);
  const bool fits = planar ? x.shape.rank() == 4 && x.shape[2] == w.height && x.shape[3] == w.width
                           : x.shape.rank() == 3 && x.shape[1] == w.height * w.width;
  c.require(
      fits && is_computable(x.dtype),
      "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() + ", expected f32 or f16 " +
          (planar ? "[images, channels, " + std::to_string(w.height) + ", " + std::to_string(w.width) + "]"
                  : "[images, " + text_of(w.height, w.width) + ", channels]"));
  c.require(w.kernel_height > 0 && w.kernel_width > 0 && w.stride_y > 0 && w.stride_x > 0,
            "windows of " + text_of(w.kernel_height, w.kernel_width) + " that are " +
                text_of(w.stride_y, w.stride_x) + " apart were asked for");
  const auto each_sees = [](uint64_t size, uint64_t kernel, uint64_t stride, uint64_t front, uint64_t count) {
    return count > 0 && front < kernel && (count - 1) * stride < size + front;
  };
  c.require(each_sees(w.height, w.kernel_height, w.stride_y, w.top, w.rows) &&
                each_sees(w.width, w.kernel_width, w.stride_x, w.left, w.columns),
            text_of(w.rows, w.columns) + " windows were asked for, of which some see nothing of a map of " +
                text_of(w.height, w.width));
  return planar ? x.shape[1] : x.shape[2];
}

}  // namespace vitrine
