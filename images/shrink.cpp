#include "images/shrink.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "images/decoders.h"

namespace vitrine {
namespace {

// The pixels of a line that one pixel of the shorter line covers, with how much of each: in units in which a
// pixel of the longer line is `to` long, so that all lengths are whole numbers.
struct Cover {
  uint32_t first = 0, last = 0;  // both included
  uint64_t first_share = 0, last_share = 0;
  uint64_t share(uint32_t pixel, uint64_t whole) const {
    return pixel == first ? first_share : pixel == last ? last_share : whole;
  }
};

std::vector<Cover> covers(uint32_t from, uint32_t to) {
  std::vector<Cover> all(to);
  for (uint64_t i = 0; i < to; ++i) {
    const uint64_t begin = i * from, end = begin + from;
    Cover& cover = all[i];
    cover.first = static_cast<uint32_t>(begin / to);
    cover.last = static_cast<uint32_t>((end - 1) / to);
    cover.first_share = std::min(end, (uint64_t{cover.first} + 1) * to) - begin;
    cover.last_share = end - std::max(begin, uint64_t{cover.last} * to);
  }
  return all;
}

}  // namespace

Image shrunk(const Image& image, uint32_t long_side) {
  const uint32_t longest = std::max(image.width, image.height);
  if (longest <= long_side) return image;
  const auto side = [&](uint32_t from) {
    const uint64_t rounded = (uint64_t{from} * long_side + longest / 2) / longest;
    return static_cast<uint32_t>(std::max<uint64_t>(rounded, 1));
  };
  Image small = empty_image(side(image.width), side(image.height));
  const std::vector<Cover> columns = covers(image.width, small.width);
  const std::vector<Cover> rows = covers(image.height, small.height);
  // Every pixel's shares add up to this, of which the largest picture's products stay below 2^64.
  const uint64_t area = uint64_t{image.width} * image.height;
  uint8_t* to = small.pixels.data();
  for (const Cover& row : rows) {
    for (const Cover& column : columns) {
      std::array<uint64_t, 4> sum{};
      for (uint32_t y = row.first; y <= row.last; ++y) {
        const uint64_t height = row.share(y, small.height);
        const uint8_t* from = image.pixels.data() + 4 * (size_t{y} * image.width + column.first);
        for (uint32_t x = column.first; x <= column.last; ++x, from += 4) {
          const uint64_t weight = height * column.share(x, small.width);
          for (size_t c = 0; c < 4; ++c) sum[c] += weight * from[c];
        }
      }
      for (const uint64_t channel : sum) *to++ = static_cast<uint8_t>((channel + area / 2) / area);
    }
  }
  return small;
}

}  // namespace vitrine
