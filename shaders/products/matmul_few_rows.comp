//! variant f32 IN4=vec4 FOURS=1 OUT=float
//! variant f16 IN4=f16vec4 FOURS=2 OUT=float16_t needs=storage16
//! variant f16_f32 IN4=f16vec4 FOURS=2 OUT=float needs=storage16
// C = epilogue(A W^T) for a handful of rows, such as the class tokens in front of a classifier. It is as fast
// as W can be read, once, 16 bytes an invocation.
//
//   workgroup   groups of `lanes` invocations; a group has `columns` columns and all rows
//   invocation  every lanes-th run of 16 bytes along K of each of its columns, times each row
//   reduction   the partial sums of a group meet in shared memory, and one invocation an output adds them in
//               the order of the lanes
//
// Rows past the last one repeat it and are never stored. Where K is no multiple of a run, elements are read
// one by one.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "matmul_few_rows.h"

layout(push_constant) uniform Push { MatmulFewRowsParams p; };
layout(set = 0, binding = 0) readonly buffer A { IN4 a[]; };
layout(set = 0, binding = 1) readonly buffer W { IN4 w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 4) readonly buffer Residual { float residual[]; };
layout(set = 0, binding = 5) writeonly buffer C { OUT c[]; };

#define EPILOGUE_BIAS(column) bias[column]
#define EPILOGUE_SCALE(column) scale[column]
#define EPILOGUE_RESIDUAL(at) residual[at]
#include "lib/epilogue.glsl"
#include "lib/tile.glsl"

layout(local_size_x_id = 4) in;
layout(constant_id = 4) const uint local_size = 128;
layout(constant_id = 5) const uint lanes = 32;
layout(constant_id = 6) const uint rows = 1;  // at least p.m
layout(constant_id = 7) const uint columns = 2;
layout(constant_id = 8) const uint depth = 768;  // K
layout(constant_id = 9) const bool whole_runs = false;  // K is a multiple of run

const uint run = 4 * FOURS;  // values in 16 bytes
const uint runs = (depth + run - 1) / run;
const uint outputs = rows * columns;
const uint pitch = local_size + 1;  // odd: the outputs of a group lie in different banks

shared float partial[outputs * pitch];

#define FETCH(NAME, BUFFER)                                                                        \
  float[run] NAME(uint row, uint index) {                                                          \
    float values[run];                                                                             \
    [[unroll]] for (uint f = 0; f < FOURS; ++f) {                                                  \
      const vec4 four = whole_runs ? vec4(BUFFER[(row * runs + index) * FOURS + f]) : vec4(0.0);   \
      [[unroll]] for (uint i = 0; i < 4; ++i) {                                                    \
        const uint k = index * run + f * 4 + i;                                                    \
        values[f * 4 + i] = whole_runs  ? four[i]                                                  \
                            : k < depth ? element_of(BUFFER, row * depth + k)                      \
                                        : 0.0;                                                     \
      }                                                                                            \
    }                                                                                              \
    return values;                                                                                 \
  }
FETCH(fetch_a, a)
FETCH(fetch_w, w)

void main() {
  const uint thread = gl_LocalInvocationIndex;
  const uint group = thread / lanes;
  const uint first_column = (linear_group() * (local_size / lanes) + group) * columns;

  float sums[outputs];
  [[unroll]] for (uint i = 0; i < outputs; ++i) sums[i] = 0.0;
  // Unrolled, it spills on the Adreno 630.
  [[dont_unroll]] for (uint index = thread % lanes; index < runs; index += lanes) {
    float weights[columns * run];
    [[unroll]] for (uint j = 0; j < columns; ++j) {
      const float values[run] = fetch_w(min(first_column + j, p.n - 1), index);
      [[unroll]] for (uint i = 0; i < run; ++i) weights[j * run + i] = values[i];
    }
    [[unroll]] for (uint r = 0; r < rows; ++r) {
      const float values[run] = fetch_a(min(r, p.m - 1), index);
      [[unroll]] for (uint j = 0; j < columns; ++j) {
        [[unroll]] for (uint i = 0; i < run; ++i) sums[r * columns + j] += values[i] * weights[j * run + i];
      }
    }
  }
  [[unroll]] for (uint i = 0; i < outputs; ++i) partial[i * pitch + thread] = sums[i];
  barrier();

  for (uint output_index = thread % lanes; output_index < outputs; output_index += lanes) {
    const uint row = output_index / columns;
    const uint column = first_column + output_index % columns;
    if (row >= p.m || column >= p.n) continue;
    float sum = 0.0;
    for (uint lane = 0; lane < lanes; ++lane) sum += partial[output_index * pitch + group * lanes + lane];
    const uint at = row * p.n + column;
    c[at] = store_as(OUT, epilogue(sum, column, at));
  }
}
