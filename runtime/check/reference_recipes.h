// What the operators of training's recipes should compute: naive loops in float64, as reference.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/check/reference.h"

namespace vitrine::reference {

// samples [B, C, H, W]; mixing [B, VITRINE_MIX_WORDS], the weights as the bits of floats.
Values mix_samples(const Values& samples, const Shape& shape, const Values& mixing);

// boxes [B, N, VITRINE_BOX_WORDS]; `fill` as EraseBoxesOptions has it.
struct Erasing {
  uint32_t fill = 0, stream = 0;
  uint64_t seed = 0;
  uint32_t step = 0;
};
Values erase_boxes(const Values& samples, const Shape& shape, const Values& boxes, const Erasing& erasing);

// Of rows of `width` elements.
Values argmax(const Values& x, uint64_t width);

// What a row's classes should be. Without other labels a row has one.
struct Targets {
  Values labels, others, shares;
  double smoothing = 0;
  std::optional<double> threshold;
  bool sum = false;
};
Values binary_cross_entropy(const Values& logits, const Targets& targets);
Values binary_cross_entropy_gradient(const Values& gradient, const Values& logits, const Targets& targets);

struct Softness {
  uint64_t classes = 0;
  double temperature = 1;
  bool sum = false;
};
Values soft_distillation(const Values& student, const Values& teacher, const Softness& softness);
Values soft_distillation_gradient(const Values& gradient, const Values& student, const Values& teacher,
                                  const Softness& softness);

}  // namespace vitrine::reference
