// Which samples of a batch are mixed with which, and what is erased of them: drawn on the host, done by
// operators of the step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/recipes/recipe.h"

namespace vitrine {

struct PictureSides {
  uint64_t height = 0, width = 0;
};

// Rows from top to above bottom, columns from left to before right.
struct Box {
  uint32_t top = 0, bottom = 0, left = 0, right = 0;
  uint64_t area() const { return uint64_t{bottom - top} * (right - left); }
  bool operator==(const Box&) const = default;
};

// How one sample is mixed.
struct Mix {
  uint32_t partner = 0;
  // The part of it that stays: its label's share, and without a box what its pixels are multiplied by.
  double share = 1;
  bool cuts = false;  // the partner's pixels stand in the box
  Box box = {};
  bool operator==(const Mix&) const = default;
};

// Of the batch of `samples` samples that is forward pass number `pass`, as timm's Mixup: sample i's partner
// is sample samples - 1 - i. A pass draws once (batch), each pair and each sample for itself by their
// numbers. One draw after the other says whether there is mixing, whether it is cutmix where both are on,
// lambda (beta_draw), and where the box lies. A sample that would be its own partner stays as it is.
std::vector<Mix> draw_mixing(const Mixup& mixup, uint64_t seed, uint64_t pass, uint64_t samples,
                             const PictureSides& sides);

// The boxes of sample `sample` of that batch, as timm's RandomErasing draws them: at most erasing.boxes().
std::vector<Box> draw_erasing(const RandomErasing& erasing, uint64_t seed, uint64_t pass, uint64_t sample,
                              const PictureSides& sides);

}  // namespace vitrine
