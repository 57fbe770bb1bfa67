//! variant u32
// One operation on each picture of a batch, as Pillow does it, to the bit: an invocation a pixel, and all of a
// workgroup of one picture.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/index.glsl"
#include "lib/soft_double.glsl"
#include "picture_operation.h"
#include "lib/picture_operation.glsl"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 256;
layout(constant_id = 1) const uint width = 224;
layout(constant_id = 2) const uint height = 224;
layout(constant_id = 3) const bool interpolates = true;  // whether one of those that do is in the batch
layout(constant_id = 4) const bool turns_hues = true;

layout(push_constant) uniform Push { PictureOperationParams p; };
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) readonly buffer Operations { uint operations[]; };
layout(set = 0, binding = 2) readonly buffer Tables { uint tables[]; };
layout(set = 0, binding = 3) writeonly buffer Y { uint y[]; };

uint picture_begin, operation_begin;

uint word(uint i) { return operations[operation_begin + i]; }
uint pixel_at(int column, int row) {
  return x[picture_begin + uint(clamp(row, 0, int(height) - 1)) * width + uint(clamp(column, 0, int(width) - 1))];
}

// ---- hue -------------------------------------------------------------------------------------------

// The float nearest to a / b.
float share(int a, int b) { return double_to_float(double_quotient(double_from_int(a), uint(b))); }
// round(v (1 - part)) for v up to 255.
int less(int v, uvec2 part) {
  const uvec2 product = double_product(double_from_int(v), double_difference(double_from_int(1), part));
  return clamp(double_floor(double_sum(product, double_from_half(1))), 0, 255);
}

// Through Pillow's "HSV", whose hue is a byte, and back.
ivec3 with_hue(ivec3 c, int turn) {
  const int most = max(max(c.r, c.g), c.b), least = min(min(c.r, c.g), c.b), spread = most - least;
  if (spread == 0) return c;
  const int saturation = double_floor(double_product(double_from_float(share(spread, most)), double_from_int(255)));
  const vec3 away = vec3(share(most - c.r, spread), share(most - c.g, spread), share(most - c.b, spread));
  precise float sector;
  if (c.r == most) {
    sector = away.b - away.g;
  } else {
    const bool green = c.g == most;
    const uvec2 sum = double_sum(double_from_int(green ? 2 : 4), double_from_float(green ? away.r : away.g));
    sector = double_to_float(double_difference(sum, double_from_float(green ? away.b : away.r)));
  }
  uvec2 part = double_sum(double_quotient(double_from_float(sector), 6u), double_from_int(1));
  part = double_difference(part, double_from_int(double_floor(part)));
  int hue = double_floor(double_product(double_from_float(double_to_float(part)), double_from_int(255)));
  hue = hue + turn & 255;
  if (saturation == 0) return ivec3(most);

  const int i = 6 * hue / 255;
  const uvec2 f = double_from_float(double_to_float(
      double_difference(double_quotient(double_from_int(6 * hue), 255u), double_from_int(i))));
  const uvec2 s = double_from_float(share(saturation, 255));
  const int low = less(most, s), falling = less(most, double_product(s, f)),
            rising = less(most, double_product(s, double_difference(double_from_int(1), f)));
  switch (i % 6) {
    case 0:
      return ivec3(most, rising, low);
    case 1:
      return ivec3(falling, most, low);
    case 2:
      return ivec3(low, most, rising);
    case 3:
      return ivec3(low, falling, most);
    case 4:
      return ivec3(rising, low, most);
    default:
      return ivec3(most, low, falling);
  }
}

// ---- sharpness -------------------------------------------------------------------------------------

// ImageFilter.SMOOTH, which leaves the outermost pixels: thirteenths, that never come halfway between two bytes.
ivec3 smoothed(ivec3 c, int column, int row) {
  if (column == 0 || row == 0 || column == int(width) - 1 || row == int(height) - 1) return c;
  ivec3 sum = 4 * c;
  for (int i = -1; i <= 1; ++i) {
    for (int k = -1; k <= 1; ++k) sum += unpack_pixel(pixel_at(column + k, row + i));
  }
  return (2 * sum + 13) / 26;
}

// ---- moves -----------------------------------------------------------------------------------------

uint nearest(int column, int row) {
  const uint at = VITRINE_OPERATION_MATRIX;
  const int from_x = int(word(at + 2)) + int(word(at + 1)) * row + int(word(at)) * column >> 16;
  const int from_y = int(word(at + 5)) + int(word(at + 4)) * row + int(word(at + 3)) * column >> 16;
  if (from_x < 0 || from_x >= int(width) || from_y < 0 || from_y >= int(height)) return word(VITRINE_OPERATION_FILL);
  return pixel_at(from_x, from_y);
}

// The whole numbers of 64 bits that are added are of either sign; the high word is y.
uvec2 sum64(uvec2 a, uvec2 b) {
  uint carry;
  const uint low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}
uvec2 product64(uvec2 a, uint b) {
  uint high, low;
  umulExtended(a.x, b, high, low);
  return uvec2(low, high + a.y * b);
}
uvec2 fixed_at(uint i) {
  return uvec2(word(VITRINE_OPERATION_FIXED + 2 * i), word(VITRINE_OPERATION_FIXED + 2 * i + 1));
}
uvec2 matrix_at(uint i) {
  return uvec2(word(VITRINE_OPERATION_MATRIX + 2 * i), word(VITRINE_OPERATION_MATRIX + 2 * i + 1));
}
// Twice the middle of a pixel through row `first` of the matrix, in 2^-32 pixels; the matrix has half of it.
uvec2 fixed_place(uint first, uint twice_x, uint twice_y) {
  return sum64(sum64(product64(fixed_at(first), twice_x), product64(fixed_at(first + 1), twice_y)), fixed_at(first + 2));
}

// Pillow's two polynomials, in floats for vectors and in doubles for one channel.
vec3 between(vec3 a, vec3 b, float d) { return a + (b - a) * d; }
vec3 between(vec3 a, vec3 b, vec3 c, vec3 e, float d) {
  return b + d * (c - a + d * (2.0 * (a - b) + c - e + d * (b - a + e - c)));
}
uvec2 between(uvec2 a, uvec2 b, uvec2 d) { return double_sum(a, double_product(double_difference(b, a), d)); }
uvec2 polynomial(uvec2 p1, uvec2 p2, uvec2 p3, uvec2 p4, uvec2 d) {
  const uvec2 inner = double_sum(p3, double_product(d, p4));
  return double_sum(p1, double_product(d, double_sum(p2, double_product(d, inner))));
}
uvec2 between(uvec2 a, uvec2 b, uvec2 c, uvec2 e, uvec2 d) {
  const uvec2 a_b = double_difference(a, b);
  return polynomial(b, double_difference(c, a), double_difference(double_sum(double_sum(a_b, a_b), c), e),
                    double_sum(double_difference(double_difference(b, a), c), e), d);
}

int channel_of(uint pixel, uint c) { return int(pixel >> 8 * c & 0xffu); }
uvec2 exact_row(bool cubic, int column, int row, uint c, uvec2 d) {
  const int b = channel_of(pixel_at(column, row), c), e = channel_of(pixel_at(column + 1, row), c);
  if (!cubic) return double_sum(double_from_int(b), double_product(double_from_int(e - b), d));
  const int a = channel_of(pixel_at(column - 1, row), c), g = channel_of(pixel_at(column + 2, row), c);
  return polynomial(double_from_int(b), double_from_int(e - a), double_from_int(2 * (a - b) + e - g),
                    double_from_int(b - a + g - e), d);
}

// Where Pillow finds the middle of an output pixel, in doubles.
uvec2 exact_place(uint first, int twice_x, int twice_y) {
  return double_sum(double_sum(double_product(matrix_at(first), double_from_half(twice_x)),
                               double_product(matrix_at(first + 1), double_from_half(twice_y))),
                    matrix_at(first + 2));
}

// All in doubles, with their roundings: of the channels that are asked for, the others are known. Loops stay
// loops, as this is much code for few pixels.
uint exact_pixel(bool cubic, int column, int row, uint channels, ivec3 known) {
  const int sides[2] = {int(width), int(height)};
  int corner[2];
  uvec2 rest[2];
  bool outside = false;
  [[dont_unroll]] for (uint axis = 0; axis < 2; ++axis) {
    uvec2 from = exact_place(3 * axis, 2 * column + 1, 2 * row + 1);
    const int whole = double_floor(from);
    outside = outside || whole < 0 || whole >= sides[axis];
    from = double_difference(from, double_from_half(1));
    corner[axis] = double_floor(from);
    rest[axis] = double_difference(from, double_from_int(corner[axis]));
  }
  if (outside) return word(VITRINE_OPERATION_FILL);
  const uint first = cubic ? 0 : 1, last = cubic ? 3 : 2;
  [[dont_unroll]] for (uint c = 0; c < 3; ++c) {
    if ((channels >> c & 1u) == 0u) continue;
    uvec2 rows[4];
    [[dont_unroll]] for (uint i = first; i <= last; ++i)
      rows[i] = exact_row(cubic, corner[0], corner[1] + int(i) - 1, c, rest[0]);
    const uvec2 value =
        cubic ? between(rows[0], rows[1], rows[2], rows[3], rest[1]) : between(rows[1], rows[2], rest[1]);
    known[c] = clamp(double_floor(value), 0, 255);
  }
  return pack_pixel(known);
}

// A result in floats, less the lowest byte that it is made of.
struct Guess {
  ivec3 low, high;
  vec3 value;
};
Guess linear_guess(int left, int top, vec2 d) {
  ivec3 taps[4];
  for (uint i = 0; i < 4; ++i) taps[i] = unpack_pixel(pixel_at(left + int(i & 1u), top + int(i >> 1)));
  Guess guess;
  guess.low = min(min(taps[0], taps[1]), min(taps[2], taps[3]));
  guess.high = max(max(taps[0], taps[1]), max(taps[2], taps[3]));
  guess.value = between(between(vec3(taps[0] - guess.low), vec3(taps[1] - guess.low), d.x),
                        between(vec3(taps[2] - guess.low), vec3(taps[3] - guess.low), d.x), d.y);
  return guess;
}
Guess cubic_guess(int left, int top, vec2 d) {
  ivec3 taps[16];
  Guess guess = Guess(ivec3(255), ivec3(0), vec3(0.0));
  for (uint i = 0; i < 16; ++i) {
    taps[i] = unpack_pixel(pixel_at(left + int(i & 3u) - 1, top + int(i >> 2) - 1));
    guess.low = min(guess.low, taps[i]);
    guess.high = max(guess.high, taps[i]);
  }
  vec3 rows[4];
  for (uint i = 0; i < 4; ++i) {
    rows[i] = between(vec3(taps[4 * i] - guess.low), vec3(taps[4 * i + 1] - guess.low),
                      vec3(taps[4 * i + 2] - guess.low), vec3(taps[4 * i + 3] - guess.low), d.x);
  }
  guess.value = between(rows[0], rows[1], rows[2], rows[3], d.y);
  return guess;
}

// Fixed point and floats say what most pixels are for certain: those whose numbers are further from whole ones
// and from the picture's edges than their errors are. The few others are computed as Pillow does.
uint interpolated(bool cubic, int column, int row) {
  const uint near = 4 * (width + height) + 4;
  const uint twice_x = uint(2 * column + 1), twice_y = uint(2 * row + 1);
  const uvec2 from_x = fixed_place(0, twice_x, twice_y), from_y = fixed_place(3, twice_x, twice_y);
  const ivec2 least = ivec2(sum64(from_x, uvec2(-near, 0xffffffffu)).y, sum64(from_y, uvec2(-near, 0xffffffffu)).y);
  const ivec2 most = ivec2(sum64(from_x, uvec2(near, 0u)).y, sum64(from_y, uvec2(near, 0u)).y);
  const ivec2 sides = ivec2(width, height);
  if (any(lessThan(most, ivec2(0))) || any(greaterThanEqual(least, sides))) return word(VITRINE_OPERATION_FILL);
  uint unsure = 7;
  ivec3 result = ivec3(0);
  if (all(greaterThanEqual(least, ivec2(0))) && all(lessThan(most, sides))) {
    const uvec2 back = uvec2(0x80000000u, 0xffffffffu);
    const uvec2 corner_x = sum64(from_x, back), corner_y = sum64(from_y, back);
    const int left = int(corner_x.y), top = int(corner_y.y);
    const vec2 d = vec2(corner_x.x >> 8, corner_y.x >> 8) * (1.0 / 16777216.0);
    Guess guess;
    if (cubic) {
      guess = cubic_guess(left, top, d);
    } else {
      guess = linear_guess(left, top, d);
    }
    const vec3 whole = floor(guess.value), rest = guess.value - whole;
    const vec3 slack = vec3(guess.high - guess.low) * uintBitsToFloat(word(VITRINE_OPERATION_SLACK));
    result = clamp(guess.low + ivec3(whole), ivec3(0), ivec3(255));
    const bvec3 open = bvec3(uvec3(lessThan(rest, slack)) | uvec3(greaterThan(rest, vec3(1.0) - slack)));
    unsure = uint(open.r) | uint(open.g) << 1 | uint(open.b) << 2;
  }
  if (unsure == 0) return pack_pixel(result);
  return exact_pixel(cubic, column, row, unsure, result);
}

// ---- the operation ---------------------------------------------------------------------------------

void main() {
  const uint pixels = width * height, tiles = (pixels + local_size - 1) / local_size;
  const uint group = linear_group(), picture = group / tiles;
  const uint i = group % tiles * local_size + gl_LocalInvocationID.x;
  if (picture >= p.pictures || i >= pixels) return;
  picture_begin = picture * pixels;
  operation_begin = (picture * p.operations + p.operation) * VITRINE_OPERATION_WORDS;
  const uint kind = word(VITRINE_OPERATION_KIND);
  const int column = int(i % width), row = int(i / width);
  uint result = x[picture_begin + i];
  if (kind != VITRINE_OPERATION_NONE && kind <= VITRINE_OPERATION_LAST_TABLE) {
    const uint table = picture * 256;
    result = tables[table + (result & 0xffu)] & 0xffu | tables[table + (result >> 8 & 0xffu)] & 0xff00u |
             tables[table + (result >> 16 & 0xffu)] & 0xff0000u | 0xff000000u;
  } else if (kind == VITRINE_OPERATION_COLOR) {
    const ivec3 c = unpack_pixel(result);
    result = pack_pixel(blended(ivec3(grey_of(c)), c, uintBitsToFloat(word(VITRINE_OPERATION_ARGUMENT))));
  } else if (kind == VITRINE_OPERATION_SHARPNESS) {
    const ivec3 c = unpack_pixel(result);
    result = pack_pixel(
        blended(smoothed(c, column, row), c, uintBitsToFloat(word(VITRINE_OPERATION_ARGUMENT))));
  } else if (kind == VITRINE_OPERATION_NEAREST) {
    result = nearest(column, row);
  } else if (turns_hues && kind == VITRINE_OPERATION_HUE) {
    result = pack_pixel(with_hue(unpack_pixel(result), int(word(VITRINE_OPERATION_ARGUMENT))));
  } else if (interpolates && kind >= VITRINE_OPERATION_BILINEAR) {
    result = interpolated(kind == VITRINE_OPERATION_BICUBIC, column, row);
  }
  y[picture_begin + i] = result;
}
