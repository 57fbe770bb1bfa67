//! variant f32 needs=addresses,int64 bind=addresses access=rrrrrw
// C = epilogue(A·Wᵀ) where W is so small that packing anything would take longer than the product, for devices
// that run a workgroup on a CPU core. One lane takes one row of A and keeps it in registers; W is read where it
// lies, at the same address by all lanes, which is nearly free. Rows move as 64-bit words where they can.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/quads.glsl"
#include "matmul_cpu_small.h"

layout(push_constant) uniform Push {
  InWords a;
  Floats w;
  Floats bias;
  Floats scale;
  InWords residual;
  OutWords c;
  MatmulSmallParams p;
};

// The residual of the columns at hand.
float residuals[8];
#define EPILOGUE_BIAS(column) bias.at[column]
#define EPILOGUE_SCALE(column) scale.at[column]
#define EPILOGUE_RESIDUAL(at) residuals[at]
#include "lib/epilogue.glsl"

layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint depth = 8;    // K
layout(constant_id = 6) const uint columns = 8;  // of C
layout(constant_id = 7) const bool transposed_w = false;  // W is [K][columns]
// Without a loop, and a branch around stores only: for devices of which Capabilities::loops_gather holds.
layout(constant_id = 8) const bool straight = false;

const uint group = 8;  // columns at a time
const bool paired_k = depth % 2 == 0;
const bool paired_columns = columns % 2 == 0;

float x[depth];

// The columns from `first` on of the result's row.
void multiply(uint row, uint first, bool stored) {
  float sum[group];
  [[unroll]] for (uint i = 0; i < group; ++i) sum[i] = 0.0;
  [[unroll]] for (uint k = 0; k < depth; ++k) {
    [[unroll]] for (uint i = 0; i < group; ++i) {
      const uint column = columns % group == 0 ? first + i : min(first + i, columns - 1);
      sum[i] += x[k] * w.at[transposed_w ? k * columns + column : column * depth + k];
    }
  }
  if (!stored) return;
  const uint to = row * columns + first;
  [[unroll]] for (uint i = 0; i < group; i += 2) {
    if (paired_columns) {
      if (first + i >= columns) break;
      if (epilogue_has_residual) {
        const uvec2 pair = unpack32(residual.at[(to + i) / 2]);
        residuals[i] = uintBitsToFloat(pair.x);
        residuals[i + 1] = uintBitsToFloat(pair.y);
      }
      const float left = epilogue(sum[i], first + i, i), right = epilogue(sum[i + 1], first + i + 1, i + 1);
      c.at[(to + i) / 2] = pack64(floatBitsToUint(vec2(left, right)));
    } else {
      [[unroll]] for (uint j = i; j < i + 2; ++j) {
        if (first + j >= columns) break;
        if (epilogue_has_residual) residuals[j] = Floats(residual).at[to + j];
        OutFloats(c).at[to + j] = epilogue(sum[j], first + j, j);
      }
    }
  }
}

void main() {
  const uint asked = gl_GlobalInvocationID.x;
  if (!straight && asked >= p.rows) return;
  const uint row = straight ? min(asked, p.rows - 1) : asked;

  if (paired_k) {
    [[unroll]] for (uint k = 0; k < depth; k += 2) {
      const uvec2 pair = unpack32(a.at[(row * depth + k) / 2]);
      x[k] = uintBitsToFloat(pair.x);
      x[k + 1] = uintBitsToFloat(pair.y);
    }
  } else {
    Floats elements = Floats(a);
    [[unroll]] for (uint k = 0; k < depth; ++k) x[k] = elements.at[row * depth + k];
  }

  if (straight) {
    [[unroll]] for (uint first = 0; first < columns; first += group) multiply(row, first, asked < p.rows);
  } else {
    for (uint first = 0; first < columns; first += group) multiply(row, first, true);
  }
}
