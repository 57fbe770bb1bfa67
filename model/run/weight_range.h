// What f16 can't hold, as far as weights alone tell it.
#pragma once

#include <string>
#include <vector>

#include "model/files/weights.h"

namespace vitrine {

// Above this, f16 has only infinity. What f32 finds just below may pass it in f16, whose own rounding
// further up differs by a few thousandths: such values are taken for too large as well.
constexpr float f16_largest = 65504.0f;
constexpr float f16_safe = f16_largest * (1 - 0x1p-6f);

struct WeightRange {
  std::string constant;  // the constant, or what is bounded: "blocks.3.attn.qkv.weight", "blocks.3.attn.q"
  float largest = 0;     // magnitude; what isn't finite in the file is left out
  bool bound = false;    // not found in the file, but what the model can compute from it at most
  std::string feeds =
      {};  // whose type that has, where it isn't a part of it: a norm's is the layer's behind it
};

// The largest magnitude of every matrix, and a bound for what each attention's norms, queries and keys can
// become: a LayerNorm's result has a length of at most sqrt(dim) before its weight and bias, whatever
// comes in. Reads all matrices once.
std::vector<WeightRange> weight_ranges(const Model& model);

}  // namespace vitrine
