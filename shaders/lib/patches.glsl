// The left side of a product whose rows are patches of images [images][channels][height][width], read where
// they lie: element k of a row is pixel (c, y, x) of its patch, x fastest, as the weight has it.
//
// The including shader says before it includes this file where the constants' ids begin (PATCHES_FIRST_ID), and
// declares `images`, an array of vec4, or defines PATCHES_PLACES_ALONE.
#ifndef VITRINE_PATCHES_GLSL
#define VITRINE_PATCHES_GLSL

layout(constant_id = PATCHES_FIRST_ID) const uint patch_height = 16;
layout(constant_id = PATCHES_FIRST_ID + 1) const uint patch_width = 16;
layout(constant_id = PATCHES_FIRST_ID + 2) const uint patch_columns = 14;
layout(constant_id = PATCHES_FIRST_ID + 3) const uint patch_count = 196;  // of an image
layout(constant_id = PATCHES_FIRST_ID + 4) const uint image_width = 224;
layout(constant_id = PATCHES_FIRST_ID + 5) const uint channel_elements = 50176;  // height * width
layout(constant_id = PATCHES_FIRST_ID + 6) const uint image_elements = 150528;   // channels * height * width
#ifndef PATCHES_PLACES_ALONE
// Of four elements of a row from a multiple of four on, how many lie behind each other: 4, which then are a vec4 of
// the images, 2 or 1.
layout(constant_id = PATCHES_FIRST_ID + 7) const uint patch_run = 4;
#endif

// Where a row's patch begins.
uint patch_start(uint row) {
  const uint number = row % patch_count;
  return row / patch_count * image_elements + number / patch_columns * patch_height * image_width +
         number % patch_columns * patch_width;
}

// How far behind that element k of the row lies.
uint patch_offset(uint k) {
  const uint line = k / patch_width;
  return line / patch_height * channel_elements + line % patch_height * image_width + k % patch_width;
}

#ifndef PATCHES_PLACES_ALONE
// Four elements of the row that begins at `start`, from k on, a multiple of four; zeros for all but the first `left`.
vec4 patch_quad(uint start, uint k, uint left) {
  if (patch_run == 4) return left > 0 ? images[(start + patch_offset(k)) / 4] : vec4(0.0);
  vec4 quad = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint at = start + patch_offset(k + i / patch_run * patch_run) + i % patch_run;
    if (i < left) quad[i] = images[at / 4][at % 4];
  }
  return quad;
}
#endif

#endif
