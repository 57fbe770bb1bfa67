// What the operators of training should compute: naive loops in float64, as reference.h.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/check/reference.h"

namespace vitrine::reference {

// logits [B, classes]. A label that no class has gives NaN.
Values cross_entropy(const Values& logits, const Values& labels, double smoothing);
Values cross_entropy_gradient(const Values& gradient, const Values& logits, const Values& labels,
                              double smoothing);

struct ClipScale {
  double scale = 1, norm = 0;
};
// A max_norm of 0 or infinity only measures.
ClipScale clip_scale(const Values& gradients, double max_norm);

// One step each, in place. The first `decayed` elements decay.
struct Sgd {
  double rate = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;
  size_t decayed = 0;
  void step(Values& param, const Values& gradient, Values& velocity) const;
};
struct Adam {
  double rate = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = false;
  size_t decayed = 0;
  // t counts from 1.
  void step(uint64_t t, Values& param, const Values& gradient, Values& m, Values& v) const;
};

}  // namespace vitrine::reference
