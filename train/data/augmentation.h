// What a sample's bytes become on their way to the model: moved and mirrored by chance, then numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/pictures/preprocess.h"
#include "train/data/dataset.h"
#include "train/data/picture_augmentation.h"

namespace vitrine {

// A rectangle of a random part of the sample and of random proportions, resized to the model's size: as
// torchvision's RandomResizedCrop and timm's RandomResizedCropAndInterpolation.
struct RandomResizedCrop {
  double scale_low = 0.08, scale_high = 1;           // the rectangle's share of the sample
  double ratio_low = 3.0 / 4, ratio_high = 4.0 / 3;  // its width to its height
  Filter filter = Filter::bicubic;

  bool operator==(const RandomResizedCrop&) const = default;
};

struct Augmentation {
  // A crop of the model's size out of the sample with so many pixels around it, black or the preprocessing's
  // fill: as torchvision's RandomCrop(size, padding). At most 65535.
  uint32_t crop_padding = 0;
  bool flip = false;  // left and right, for every second sample
  // In place of the preprocessing's resize and crop. Of pictures alone: see LoaderOptions::pictures.
  std::optional<RandomResizedCrop> resized_crop = {};
  // Behind all that; of pictures alone, too.
  PictureAugmentation operations = {};
  uint32_t fill = 0xff000000;  // what they leave where nothing is, a pixel

  bool operator==(const Augmentation&) const = default;
};

// Depends on nothing but its arguments: not on batches, threads, or what was drawn before.
CropPlacement draw_placement(const Augmentation& augmentation, uint64_t seed, uint32_t epoch,
                             uint32_t sample);

// From ten tries at most; where none fits into the sample, the largest in its middle whose proportions are
// allowed. `draw` gives numbers from 0 to 1, four a try: for scale, proportions, top and left.
PictureBox resized_crop_box(const RandomResizedCrop& crop, uint32_t height, uint32_t width,
                            const std::function<double()>& draw);
PictureBox draw_box(const RandomResizedCrop& crop, uint32_t height, uint32_t width, uint64_t seed,
                    uint32_t epoch, uint32_t sample);

// `from` and `to` are [channels, height, width].
void place(std::span<const uint8_t> from, const SampleShape& shape, const CropPlacement& placement,
           std::span<uint8_t> to);

// The mean and standard deviation of all of a set's bytes / 255, channel by channel.
struct ChannelStatistics {
  std::vector<double> mean, std;
};
ChannelStatistics channel_statistics(const Dataset& dataset);

}  // namespace vitrine
