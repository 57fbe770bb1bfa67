#include "train/data/augmentation.h"

#include <algorithm>
#include <cmath>

#include "train/data/random_streams.h"

namespace vitrine {

CropPlacement draw_placement(const Augmentation& augmentation, uint64_t seed, uint32_t epoch,
                             uint32_t sample) {
  const RandomStream stream = stream_for(seed, RandomUse::augmentation, epoch);
  const Philox::Block place = stream.block(2 * uint64_t{sample}),
                      mirror = stream.block(2 * uint64_t{sample} + 1);
  const auto padding = static_cast<int32_t>(augmentation.crop_padding);
  const uint32_t places = 2 * augmentation.crop_padding + 1;
  return {.down = static_cast<int32_t>(below(places, place[0], place[1])) - padding,
          .right = static_cast<int32_t>(below(places, place[2], place[3])) - padding,
          .mirrored = augmentation.flip && (mirror[0] >> 31) != 0};
}

void place(std::span<const uint8_t> from, const SampleShape& shape, const CropPlacement& placement,
           std::span<uint8_t> to) {
  const auto height = static_cast<int64_t>(shape.height), width = static_cast<int64_t>(shape.width);
  std::ranges::fill(to, uint8_t{0});
  // The columns of the crop, before it is mirrored, that the sample has pixels for.
  const int64_t begin = std::max<int64_t>(0, -placement.right),
                end = std::min(width, width - placement.right);
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const int64_t source_y = y + placement.down;
      if (source_y < 0 || source_y >= height || begin >= end) continue;
      const uint8_t* source = from.data() + (c * height + source_y) * width + placement.right;
      uint8_t* row = to.data() + (c * height + y) * width;
      if (placement.mirrored) {
        for (int64_t x = begin; x < end; ++x) row[width - 1 - x] = source[x];
      } else {
        std::copy(source + begin, source + end, row + begin);
      }
    }
  }
}

ChannelStatistics channel_statistics(const Dataset& dataset) {
  const SampleShape& shape = dataset.shape();
  // Whole numbers: the result doesn't depend on the order of a sum.
  std::vector<uint64_t> sums(shape.channels), squares(shape.channels);
  std::vector<uint8_t> pixels(shape.bytes());
  for (uint64_t i = 0; i < dataset.count(); ++i) {
    dataset.read(i, pixels);
    for (uint32_t c = 0; c < shape.channels; ++c) {
      for (uint64_t p = c * shape.pixels(); p < (c + 1) * shape.pixels(); ++p) {
        sums[c] += pixels[p];
        squares[c] += uint64_t{pixels[p]} * pixels[p];
      }
    }
  }
  const double n = static_cast<double>(dataset.count()) * static_cast<double>(shape.pixels());
  ChannelStatistics statistics;
  for (uint32_t c = 0; c < shape.channels; ++c) {
    const double mean = static_cast<double>(sums[c]) / n;
    statistics.mean.push_back(mean / 255);
    statistics.std.push_back(std::sqrt(std::max(0.0, static_cast<double>(squares[c]) / n - mean * mean)) /
                             255);
  }
  return statistics;
}

}  // namespace vitrine
