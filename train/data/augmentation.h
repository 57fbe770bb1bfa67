// What a sample's bytes become on their way to the model: moved and mirrored by chance, then numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/pictures/preprocess.h"
#include "train/data/dataset.h"

namespace vitrine {

struct Augmentation {
  // A crop of the model's size out of the sample with so many pixels around it, black or the preprocessing's
  // fill: as torchvision's RandomCrop(size, padding). At most 65535.
  uint32_t crop_padding = 0;
  bool flip = false;  // left and right, for every second sample

  bool operator==(const Augmentation&) const = default;
};

// Depends on nothing but its arguments: not on batches, threads, or what was drawn before.
CropPlacement draw_placement(const Augmentation& augmentation, uint64_t seed, uint32_t epoch,
                             uint32_t sample);

// `from` and `to` are [channels, height, width].
void place(std::span<const uint8_t> from, const SampleShape& shape, const CropPlacement& placement,
           std::span<uint8_t> to);

// The mean and standard deviation of all of a set's bytes / 255, channel by channel.
struct ChannelStatistics {
  std::vector<double> mean, std;
};
ChannelStatistics channel_statistics(const Dataset& dataset);

}  // namespace vitrine
