// Pixels of four bytes, red lowest, and sums over them as Pillow makes them.
#ifndef VITRINE_PIXELS_GLSL
#define VITRINE_PIXELS_GLSL

ivec3 unpack_pixel(uint pixel) { return ivec3(pixel & 0xffu, pixel >> 8 & 0xffu, pixel >> 16 & 0xffu); }

// From sums of bytes times 22-bit weights that began at one half: rounded, clamped, alpha opaque.
uint pack_sums(ivec3 sums) {
  const uvec3 bytes = uvec3(clamp(sums >> VITRINE_RESAMPLE_PRECISION, ivec3(0), ivec3(255)));
  return bytes.r | bytes.g << 8 | bytes.b << 16 | 0xff000000u;
}

#endif
