// Random numbers as in runtime/util/philox.h, bit for bit, and masks of them as in runtime/ops/elementwise/random_mask.h.
#ifndef VITRINE_PHILOX_GLSL
#define VITRINE_PHILOX_GLSL

#extension GL_EXT_control_flow_attributes : require
#include "lib/step_state.h"

// Four random words: Philox 4x32 with 10 rounds.
uvec4 philox(uvec4 counter, uvec2 key) {
  [[unroll]] for (uint round = 0; round < 10; ++round) {
    uint a, a_high, b, b_high;
    umulExtended(0xD2511F53u, counter.x, a_high, a);
    umulExtended(0xCD9E8D57u, counter.z, b_high, b);
    counter = uvec4(b_high ^ counter.y ^ key.x, b, a_high ^ counter.w ^ key.y, a);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}

// What a mask depends on beyond the draw's number.
struct MaskSource {
  uvec2 key;  // the seed
  uint step, stream;
  uint threshold;  // what draws a smaller word is dropped
};
#define mask_source(words, stream, threshold)                                               \
  MaskSource(uvec2(words[VITRINE_STEP_SEED_LOW], words[VITRINE_STEP_SEED_HIGH]), words[VITRINE_STEP_NUMBER], stream, \
             threshold)

// The draws 4 * block to 4 * block + 3 of `row`: whether each is kept.
bvec4 kept_four(MaskSource source, uint block, uint row) {
  return greaterThanEqual(philox(uvec4(block, row, source.stream, source.step), source.key), uvec4(source.threshold));
}

#endif
