//! variant w32 T=uint V=uint
//! variant w16 T=uint16_t V=uint needs=storage16
//! variant wide T=uvec4 V=uvec4
// One invocation a unit of a row, an element or 16 bytes: a grid of tokens into windows, or back. Units are moved as
// integers, so that no bit changes.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "token_windows.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool merge = false;
layout(constant_id = 2) const uint window = 14;
layout(constant_id = 3) const uint height = 64;
layout(constant_id = 4) const uint width = 64;
layout(constant_id = 5) const uint units = 192;  // of a row

layout(push_constant) uniform Push { TokenWindowsParams p; };
layout(set = 0, binding = 0) readonly buffer X { T x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { T y[]; };

void main() {
  const uint i = linear_invocation();
  if (i >= p.count) return;
  const uint window_rows = (height + window - 1) / window, window_columns = (width + window - 1) / window;
  const uint row = i / units, unit = i % units;
  if (merge) {
    const uint column = row % width, line = row / width % height, image = row / (width * height);
    const uint in_image = line / window * window_columns + column / window;
    const uint in_window = line % window * window + column % window;
    const uint from = (image * (window_rows * window_columns) + in_image) * (window * window) + in_window;
    y[i] = T(V(x[from * units + unit]));
    return;
  }
  const uint in_window = row % (window * window), of_all = row / (window * window);
  const uint in_image = of_all % (window_rows * window_columns);
  const uint image = of_all / (window_rows * window_columns);
  const uint line = in_image / window_columns * window + in_window / window;
  const uint column = in_image % window_columns * window + in_window % window;
  if (line < height && column < width) {
    y[i] = T(V(x[((image * height + line) * width + column) * units + unit]));
  } else {
    y[i] = T(V(0));
  }
}
