// What chance does to a training picture's bytes once it has the model's size: timm's RandAugment,
// torchvision's TrivialAugmentWide and ColorJitter.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/ops/pictures/picture_operation.h"

namespace vitrine {

// How pixels are made where a picture is turned, slanted or moved.
enum class MoveFilter : uint8_t { random, bilinear, bicubic };  // random: one of the two, each time

// timm's, of its fifteen operations.
struct RandAugment {
  double magnitude = 10;
  uint64_t num_layers = 2;   // operations, one after the other
  double prob = 0.5;         // of each
  double magnitude_std = 0;  // of a normal distribution about it; above 100: uniform from 0 to it
  uint64_t magnitude_max = 10;
  bool increasing = false;  // operations of which more magnitude is more change, where there are two kinds
  bool weighted = false;    // moves more often than colors, none of them twice: timm's "weights"
  MoveFilter interpolation = MoveFilter::random;

  bool operator==(const RandAugment&) const = default;
};

// Bounds of a uniform distribution.
struct JitterRange {
  double low = 0, high = 0;
  bool operator==(const JitterRange&) const = default;
};

// torchvision's. Factors; of hue a part of the circle that is added. Nothing is drawn of what stays.
struct ColorJitter {
  JitterRange brightness{1, 1}, contrast{1, 1}, saturation{1, 1}, hue{0, 0};

  // How many of the four may change something.
  uint64_t operations() const;
  bool operator==(const ColorJitter&) const = default;
};

// In this order.
struct PictureAugmentation {
  std::optional<RandAugment> rand_augment;
  bool trivial_augment = false;
  std::optional<ColorJitter> color_jitter;

  // The most that a picture gets.
  uint64_t operations() const;
  bool on() const { return operations() > 0; }
  // Which kinds of shader code the device has to have.
  bool interpolates() const { return rand_augment.has_value(); }
  bool turns_hues() const { return color_jitter && color_jitter->hue != JitterRange{}; }

  bool operator==(const PictureAugmentation&) const = default;
};

// Where it is drawn from: numbers of (0, 1), and of the standard normal distribution.
struct AugmentationDraws {
  std::function<double()> uniform, normal;
};

// Of a picture of the model's size; `fill` is what RandAugment's moves leave where nothing is. Draws what the
// libraries draw, in their order.
std::vector<PictureOperation> picture_operations(const PictureAugmentation& augmentation, uint32_t width,
                                                 uint32_t height, uint32_t fill,
                                                 const AugmentationDraws& draws);
// Depends on nothing but its arguments.
std::vector<PictureOperation> draw_picture_operations(const PictureAugmentation& augmentation, uint32_t width,
                                                      uint32_t height, uint32_t fill, uint64_t seed,
                                                      uint32_t epoch, uint32_t sample);

// As timm fills: the pixel of the mean (of 0 to 1) of each channel, or of one for all.
uint32_t fill_of_mean(const std::vector<double>& mean);

// The words of all, with nothing behind them until there are `count`.
std::vector<uint32_t> operation_words(const std::vector<PictureOperation>& operations, uint64_t count,
                                      uint32_t width, uint32_t height);

}  // namespace vitrine
