// What the two kernels of picture operations share: pixels of four bytes, red lowest, and Pillow's arithmetic.
#ifndef VITRINE_PICTURE_OPERATION_GLSL
#define VITRINE_PICTURE_OPERATION_GLSL

ivec3 unpack_pixel(uint pixel) { return ivec3(pixel & 0xffu, pixel >> 8 & 0xffu, pixel >> 16 & 0xffu); }
uint pack_pixel(ivec3 c) { return uint(c.r) | uint(c.g) << 8 | uint(c.b) << 16 | 0xff000000u; }

// As its convert("L").
int grey_of(ivec3 c) { return (19595 * c.r + 38470 * c.g + 7471 * c.b + 0x8000) >> 16; }

// As its blend(): from a, where the factor is 0, through b, where it is 1. Two roundings to floats, never one.
int blended(int a, int b, float factor) {
  precise const float step = factor * float(b - a);
  precise const float sum = float(a) + step;
  return int(clamp(sum, 0.0, 255.0));
}
ivec3 blended(ivec3 a, ivec3 b, float factor) {
  return ivec3(blended(a.r, b.r, factor), blended(a.g, b.g, factor), blended(a.b, b.b, factor));
}

#endif
