// What timm and torchvision make of pictures for given random numbers
// (tests/parity/preprocessing/augmentations.json).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/data/picture_augmentation.h"

namespace vitrine::test {

struct AugmentationCase {
  std::string label;
  PictureAugmentation augmentation;
  uint32_t width = 0, height = 0;
  bool grey = false;
  std::vector<uint32_t> pixels;              // of the picture; a grey one has the same byte three times
  std::vector<PictureOperation> operations;  // that the numbers come to
  size_t numbers_left = 0;                   // that nobody asked for
  std::string expected;                      // hash

  // The same hash of a result.
  std::string hash_of(std::vector<uint32_t> result) const;
};

std::vector<AugmentationCase> augmentation_cases();

}  // namespace vitrine::test
