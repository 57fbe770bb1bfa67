// Which stream of random numbers each use has, so that no two share numbers under one seed.
#pragma once

#include <cstdint>

#include "runtime/util/philox.h"

namespace vitrine {

enum class RandomUse : uint32_t {
  epoch_order = 0x6F726465,
  augmentation = 0x6175676D,
  resized_crop = 0x63726F70,
  picture_operations = 0x6F707273,
  digits = 0x64696769,
  digit_colors = 0x64636F6C,
  mixing = 0x6D697875,
  erasing = 0x65726173,
  sampling = 0x73616D70,
  picture_sizes = 0x73697A65
};

constexpr RandomStream stream_for(uint64_t seed, RandomUse use, uint32_t number) {
  return {seed, uint64_t{static_cast<uint32_t>(use)} << 32 | number};
}

// A whole number below `bound`, each as likely as the others to within 2^-32 of `bound` parts.
constexpr uint32_t below(uint32_t bound, uint32_t high, uint32_t low) {
  return static_cast<uint32_t>((uint64_t{high} * bound + (uint64_t{low} * bound >> 32)) >> 32);
}

}  // namespace vitrine
