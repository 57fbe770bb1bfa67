//! variant f16 needs=addresses,int64,storage16 bind=addresses access=rw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/types.glsl"
#include "lib/quads.glsl"
#include "attention_cpu_lanes.h"

// The part of f16 rows that holds all heads' keys, or values, as dense rows of f32: attention_cpu_lanes.comp
// reads each of them once for eight queries, and converting is as dear to a CPU as multiplying.
//
//   invocation  four neighbours
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool whole_quads = false;  // width, stride and offset are multiples of 4
layout(constant_id = 2) const uint width = 4;            // elements of a row that are taken; dividing by a constant is cheap

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Elements { float16_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Dense { float v[]; };
layout(push_constant) uniform Push {
  Elements rows;
  Dense dense;
  AttentionLanesRowsParams p;
};

void main() {
  const uint quads = (width + 3) / 4;
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  for (uint at = gl_GlobalInvocationID.x; at < p.rows * quads; at += stride) {
    const uint row = at / quads, column = at % quads * 4;
    const uint from = row * p.stride + p.offset + column;
    if (whole_quads) {
      store_quad_f32(OutWords(dense), at, load_quad_f16(InWords(rows), from / 4));
    } else {
      [[unroll]] for (uint i = 0; i < 4; ++i) {
        if (column + i < width) dense.v[row * width + column + i] = load_float(rows.v[from + i]);
      }
    }
  }
}
