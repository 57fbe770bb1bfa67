// What the tiled kernels (matmul_tiled, matmul_coopmat, attention_tiled) share.
#ifndef VITRINE_TILE_GLSL
#define VITRINE_TILE_GLSL

// Four steps of an inner product, in order. Plain multiply and add: the driver fuses them where that is
// the fast form (old AMD parts have a fast mad and a slow fma).
float multiply_add(vec4 a, vec4 b, float sum) {
  sum += a.x * b.x;
  sum += a.y * b.y;
  sum += a.z * b.z;
  sum += a.w * b.w;
  return sum;
}

// Element `at` of a buffer that is declared in groups of four.
#define element_of(buffer, at) float(buffer[(at) >> 2][(at)&3])

#endif
