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

PictureBox resized_crop_box(const RandomResizedCrop& crop, uint32_t height, uint32_t width,
                            const std::function<double()>& draw) {
  const double h = height, w = width, area = h * w;
  const auto between = [](double low, double high, double at) { return low + (high - low) * at; };
  // One of the places that leave the rectangle in the sample.
  const auto place = [](uint32_t spare, double at) {
    return std::min(static_cast<uint32_t>(at * (double{1} + spare)), spare);
  };
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target = area * between(crop.scale_low, crop.scale_high, draw());
    const double ratio = std::exp(between(std::log(crop.ratio_low), std::log(crop.ratio_high), draw()));
    const double top = draw(), left = draw();
    // Half to even, as Python's round().
    const double wide = std::nearbyint(std::sqrt(target * ratio)),
                 high = std::nearbyint(std::sqrt(target / ratio));
    if (wide < 1 || high < 1 || wide > w || high > h) continue;
    PictureBox box{.height = static_cast<uint32_t>(high), .width = static_cast<uint32_t>(wide)};
    box.top = place(height - box.height, top);
    box.left = place(width - box.width, left);
    return box;
  }
  PictureBox box{.height = height, .width = width};
  if (w / h < crop.ratio_low) {
    box.height = static_cast<uint32_t>(std::clamp(std::nearbyint(w / crop.ratio_low), 1.0, h));
  } else if (w / h > crop.ratio_high) {
    box.width = static_cast<uint32_t>(std::clamp(std::nearbyint(h * crop.ratio_high), 1.0, w));
  }
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

PictureBox draw_box(const RandomResizedCrop& crop, uint32_t height, uint32_t width, uint64_t seed,
                    uint32_t epoch, uint32_t sample) {
  const RandomStream stream = stream_for(seed, RandomUse::resized_crop, epoch);
  uint64_t drawn = 0;
  return resized_crop_box(crop, height, width, [&] {
    // Sixteen tries' room for every sample.
    const Philox::Block words = stream.block(uint64_t{sample} * 16 + drawn / 4);
    return uniform_from(words[drawn++ % 4]);
  });
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
