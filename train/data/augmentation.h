// What a sample's bytes become on their way to the model: moved and mirrored by chance, then numbers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/data/dataset.h"

namespace vitrine {

struct Augmentation {
  // A crop of the sample's own size out of the sample with so many black pixels around it: as torchvision's
  // RandomCrop(size, padding). At most 65535.
  uint32_t crop_padding = 0;
  bool flip = false;  // left and right, for every second sample

  bool operator==(const Augmentation&) const = default;
};

// Pixel (y, x) of the result is the sample's (y + down, x + right), mirrored after that; black where the
// sample has none.
struct CropPlacement {
  int32_t down = 0, right = 0;
  bool mirrored = false;

  bool operator==(const CropPlacement&) const = default;
};

// Depends on nothing but its arguments: not on batches, threads, or what was drawn before.
CropPlacement draw_placement(const Augmentation& augmentation, uint64_t seed, uint32_t epoch,
                             uint32_t sample);

// `from` and `to` are [channels, height, width].
void place(std::span<const uint8_t> from, const SampleShape& shape, const CropPlacement& placement,
           std::span<uint8_t> to);

// [channels][256]: what each byte becomes: (byte / 255 - mean) / std, in float32 as PyTorch computes it.
// `mean` and `std` have one number, or one a channel. Error(bad_file) where they are not for so many
// channels.
std::vector<float> normalized_values(uint32_t channels, const std::vector<double>& mean,
                                     const std::vector<double>& std);

// The mean and standard deviation of all of a set's bytes / 255, channel by channel.
struct ChannelStatistics {
  std::vector<double> mean, std;
};
ChannelStatistics channel_statistics(const Dataset& dataset);

}  // namespace vitrine
