// Numbers of patches as colored pixels, as images/overlay.cpp colors them: from the smallest to the largest
// number of a map, in between monotone cubics through the patches' centers (images/monotone.cpp), along rows
// first. Each byte of a pixel is within one of what float64 gives.
//
// A workgroup has all of a map's numbers in shared memory and takes part in coloring it; an invocation takes
// columns of up to nine pixels between two rows of centers, which share what is interpolated along the rows.
//
// The including shader declares the constants local_size (0), cells and grid_width, the buffers choice[],
// colors[], pixels[] and numbers[], and defines number_of().
#ifndef VITRINE_HEAT_GLSL
#define VITRINE_HEAT_GLSL

#include "lib/heat.h"
#include "lib/nonfinite.glsl"
#include "lib/reduce.glsl"

const uint grid_height = cells / grid_width;
const uint pixels_a_cell = VITRINE_HEAT_PIXELS;
const uint center = pixels_a_cell / 2;
const uint picture_width = grid_width * pixels_a_cell, picture_height = grid_height * pixels_a_cell;

const uint broken_color = 0xffff00ffu;  // magenta: no color map has it
const float least_cover = 0.55;

// What the map number `map` has for a patch.
float number_of(uint map, uint cell);

// From 0 for the smallest to 1 for the largest number of the map; below 0 for one that isn't finite.
shared float warmth_of[cells];

// Broken patches are the map's low end to their neighbours.
float warmth_at(uint row, uint column) { return max(warmth_of[row * grid_width + column], 0.0); }

// The slope at a point between two straight pieces, see images/monotone.cpp.
float slope_between(float before, float after) {
  return before * after <= 0.0 ? 0.0 : 2.0 * before * after / (before + after);
}
// The same where it is point `at` of `count`: level at both ends.
float slope_at(uint at, uint count, float before, float after) {
  return at > 0 && at + 1 < count ? slope_between(before, after) : 0.0;
}

// Hermite's cubic from 0 to 1.
float cubic(float a, float slope_a, float b, float slope_b, float t) {
  const float u = 1.0 - t;
  return u * u * (1.0 + 2.0 * t) * a + t * t * (3.0 - 2.0 * t) * b + u * u * t * slope_a - t * t * u * slope_b;
}

// Through four points, of which the second is number `at` of `count`; those past the ends are not looked at.
float between(vec4 points, uint at, uint count, float share) {
  const vec3 steps = points.yzw - points.xyz;
  return cubic(points.y, slope_at(at, count, steps.x, steps.y), points.z,
               slope_at(at + 1, count, steps.y, steps.z), share);
}

// Numbers of the points that between() takes.
uvec4 around(uint at, uint count) {
  return min(uvec4(max(at, 1u) - 1, at, at + 1, at + 2), uvec4(count - 1));
}

float along_row(uint row, uvec4 columns, uint at, float share) {
  return between(vec4(warmth_at(row, columns.x), warmth_at(row, columns.y), warmth_at(row, columns.z),
                      warmth_at(row, columns.w)),
                 at, grid_width, share);
}

vec3 unpacked(uint color) { return vec3(color & 0xffu, color >> 8 & 0xffu, color >> 16 & 0xffu); }

uint color_of(float warmth) {
  const float place = clamp(warmth, 0.0, 1.0) * float(VITRINE_HEAT_COLORS - 1);
  const uint below = min(uint(place), uint(VITRINE_HEAT_COLORS - 2));
  const vec3 color = mix(unpacked(colors[below]), unpacked(colors[below + 1]), place - float(below));
  const float cover = least_cover + (1.0 - least_cover) * clamp(warmth, 0.0, 1.0);
  const uvec4 bytes = uvec4(vec4(color, 255.0 * cover) + 0.5);
  return bytes.r | bytes.g << 8 | bytes.b << 16 | bytes.a << 24;
}

// The pixels of column x from the row of centers `gap - 1` to that before `gap`; those of gap 0 and of the
// last one lie outside of all centers and are what the nearest row has.
void paint_column(uint map, uint gap, uint x) {
  const uint across = min(max(x, center) - center, (grid_width - 1) * pixels_a_cell);
  const uint column = across / pixels_a_cell;
  const float share = float(across % pixels_a_cell) / float(pixels_a_cell);
  const uvec4 columns = around(column, grid_width);
  const uint row = max(gap, 1u) - 1;
  const uvec4 rows = around(row, grid_height);
  const vec4 points = vec4(along_row(rows.x, columns, column, share), along_row(rows.y, columns, column, share),
                           along_row(rows.z, columns, column, share), along_row(rows.w, columns, column, share));
  const bool inside = gap > 0 && gap < grid_height;
  const uint first = gap == 0 ? 0 : row * pixels_a_cell + center;
  const uint end = min(gap * pixels_a_cell + center, picture_height);
  for (uint y = first; y < end; ++y) {
    const float down = inside ? float(y - first) / float(pixels_a_cell) : 0.0;
    const bool broken = warmth_of[y / pixels_a_cell * grid_width + x / pixels_a_cell] < 0.0;
    pixels[(map * picture_height + y) * picture_width + x] =
        broken ? broken_color : color_of(between(points, row, grid_height, down));
  }
}

// Part number `part` of `parts` of a map. All invocations of the group must call.
void paint(uint map, uint part, uint parts) {
  const uint lane = gl_LocalInvocationID.x;
  const float infinity = uintBitsToFloat(0x7f800000u);
  float low = infinity, high = -infinity;
  for (uint cell = lane; cell < cells; cell += local_size) {
    const float number = number_of(map, cell);
    warmth_of[cell] = number;
    if (part == 0) numbers[map * cells + cell] = number;
    if (is_finite(number)) {
      low = min(low, number);
      high = max(high, number);
    }
  }
  low = -max_over_group(-low);
  high = max_over_group(high);
  const float span = high - low;
  for (uint cell = lane; cell < cells; cell += local_size) {
    const float number = warmth_of[cell];
    // Numbers that are all the same have the color of the low end.
    warmth_of[cell] = !is_finite(number) ? -1.0 : span > 0.0 ? (number - low) / span : 0.0;
  }
  barrier();
  const uint columns = (grid_height + 1) * picture_width;
  for (uint i = part * local_size + lane; i < columns; i += parts * local_size)
    paint_column(map, i / picture_width, i % picture_width);
}

#endif
