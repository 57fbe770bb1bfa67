// Rotary positions behind a product: C's columns make heads of rotary_width, of which those before rotary_columns are
// turned, pair by pair, by angles that go with the row's token (shaders/attention/rotary.comp is the pass of its own).
//
// Where a pair is half a head apart, four neighbouring columns of the kernel are two pairs: it reads W's rows, and the
// bias, at rotary_source, and stores two columns here and two half a head further on. So an invocation that has four
// columns has whole pairs, and no tile has to hold a head.
//
// The including shader says before it includes this file, behind lib/epilogue.glsl, where the constants' ids begin
// (ROTARY_FIRST_ID); it declares `angles`, an array of vec2, and `c2`, C by twos of type OUT2.
#ifndef VITRINE_ROTARY_EPILOGUE_GLSL
#define VITRINE_ROTARY_EPILOGUE_GLSL

layout(constant_id = ROTARY_FIRST_ID) const uint rotary_width = 64;          // of a head: a multiple of four
layout(constant_id = ROTARY_FIRST_ID + 1) const uint rotary_columns = 1536;  // whole heads, from the first on
layout(constant_id = ROTARY_FIRST_ID + 2) const uint rotary_tokens = 201;    // of a sample
layout(constant_id = ROTARY_FIRST_ID + 3) const uint rotary_first = 5;       // the first token that is turned
layout(constant_id = ROTARY_FIRST_ID + 4) const uint rotary_tables = 1;      // which the heads take by turns
layout(constant_id = ROTARY_FIRST_ID + 5) const bool rotary_halves = true;   // a pair is half a head apart

bool in_halves(uint column) { return rotary_halves && column < rotary_columns; }

// The column of C that the kernel's `column` is.
uint rotary_source(uint column) {
  if (!in_halves(column)) return column;
  const uint within = column % rotary_width;
  return column - within + within / 4 * 2 + within % 2 + within % 4 / 2 * (rotary_width / 2);
}

// From the first two of four columns to the other two, in C.
uint rotary_apart(uint column) { return in_halves(column) ? rotary_width / 2 : 2; }

// Two from an even place on of what is bound by fours.
#define two_of(fours, at) (((at) & 2) == 0 ? fours[(at) >> 2].xy : fours[(at) >> 2].zw)

vec4 rotary_bias4(uint column) {
  if (!epilogue_has_bias) return vec4(0.0);
  const uint low = rotary_source(column), high = low + rotary_apart(column);
  return vec4(two_of(bias4, low), two_of(bias4, high));
}

vec4 rotary4(vec4 x, uint row, uint column) {
  const uint token = row % rotary_tokens;
  if (column >= rotary_columns || token < rotary_first) return x;
  const uint head = column / rotary_width, pair = column % rotary_width / 2;
  const uint line = head % rotary_tables * (rotary_tokens - rotary_first) + token - rotary_first;
  const uint at = line * rotary_width + pair;
  const vec2 cosines = angles[at / 2], sines = angles[(at + rotary_width / 2) / 2];
  const vec2 a = rotary_halves ? x.xy : x.xz, b = rotary_halves ? x.zw : x.yw;
  const vec2 low = a * cosines - b * sines, high = b * cosines + a * sines;
  return rotary_halves ? vec4(low, high) : vec4(low.x, high.x, low.y, high.y);
}

// Four sums of a row, from a column on that is a multiple of four.
void store_rotary4(vec4 sums, vec4 bias, uint row, uint column, uint columns) {
  const vec4 y = rotary4(epilogue4(sums, bias, vec4(1.0), vec4(0.0)), row, column);
  const uint at = row * columns + rotary_source(column);
  c2[at >> 1] = OUT2(y.xy);
  c2[(at + rotary_apart(column)) >> 1] = OUT2(y.zw);
}

#endif
