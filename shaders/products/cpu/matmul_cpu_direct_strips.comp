//! variant f32 needs=addresses,int64 bind=addresses access=rw
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "matmul_cpu_direct.h"

// An operand [K][columns] into strips [columns / width][K, padded][width], in which matmul_cpu_direct_columns.comp
// walks along K without skipping from page to page. A column past the last one is the last one again; the padding
// is zeros where it is asked for.
//
//   invocation  one value of K of a strip
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint width = 8;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Strips { float v[]; };
layout(push_constant) uniform Push {
  Floats from;
  Strips strips;
  MatmulDirectStripsParams p;
};

void main() {
  const uint stride = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  const uint across = (p.columns + width - 1) / width;
  for (uint at = gl_GlobalInvocationID.x; at < p.count; at += stride) {
    const uint k = at / across, strip = at % across;
    const uint to = (strip * p.padded + k) * width;
    [[unroll]] for (uint i = 0; i < width; ++i) {
      float x = 0.0;
      if (k < p.depth) x = from.v[k * p.columns + min(strip * width + i, p.columns - 1)];
      strips.v[to + i] = x;
    }
  }
}
