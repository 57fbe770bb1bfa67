// What shaders share that multiply a chunk of a product's K (shaders/products/cpu/matmul_cpu_chunk.comp): the lane's own
// weights, and its sums, from the chunk before into registers and on to the one behind, as [panels][blocks][block_rows][lanes].
//
// Before it includes this file the including shader declares the constants `lanes` and `block_rows`, the buffers
// `Weights`, of TW with WEIGHT_BYTES each, and `Sums`, of floats, and the push constants' member p with the digits of
// lib/known.h.
#ifndef VITRINE_PRODUCT_CHUNK_GLSL
#define VITRINE_PRODUCT_CHUNK_GLSL
#include "lib/own.glsl"

#if WEIGHT_BYTES == 4
DEFINE_OWN_OF(Weights, float)
float own_weight(Weights weights, uint first) { return own_of(weights, first); }
#else
DEFINE_OWN_OF(Weights, uint)
float own_weight(Weights weights, uint first) { return unpackHalf2x16(own_of(weights, first)).x; }
#endif

float sum[block_rows];  // of the lane's column

float own_sum(Sums from, uint first) {
  float own = from.v[first];
  [[unroll]] for (uint lane = 1; lane < lanes; ++lane) {
    const float other = from.v[first + lane];
    own = gl_SubgroupInvocationID == lane ? other : own;
  }
  return own;
}

// Zeros unless it goes on from a chunk before. Read even where that is not wanted: a branch would make this gathers.
void load_sums(Sums tile, bool go_on) {
  [[unroll]] for (uint r = 0; r < block_rows; ++r) {
    const float own = own_sum(tile, r * lanes);
    sum[r] = go_on ? own : 0.0;
  }
}

// A sum that is used in one place only would be computed there by LLVM, after all its factors had been loaded
// and stored again. So each is kept twice, in two pieces of code: reading a push constant divides them.
void store_sums(Sums sums, uint tile) {
  float kept[2 * block_rows];
  const uint one = p.digits[1];
  [[unroll]] for (uint r = 0; r < block_rows; ++r) kept[2 * r] = sum[r];
  const uint two = p.digits[2];
  [[unroll]] for (uint r = 0; r < block_rows; ++r) kept[2 * r + 1] = sum[r];

  uint to = tile + gl_SubgroupInvocationID;
  uint r = two - one - 1;
  do {
    sums.v[to] = kept[2 * r];
    to += lanes;
  } while (++r < block_rows);
}

#endif
