//! variant f16 OUT=float16_t needs=coopmat,coopmat2,coopmat2_elements,coopmat2_tensors,coopmat2_workgroups,fp16,storage16
//! variant f16_f32 OUT=float needs=coopmat,coopmat2,coopmat2_elements,coopmat2_tensors,coopmat2_workgroups,fp16,storage16
// C = epilogue(A W^T) on the matrix units, for drivers with all of VK_NV_cooperative_matrix2: f16 times f16,
// summed in f32.
//
//   grid        tiles of tile_m x tile_n outputs, in panels (lib/panels.glsl)
//   workgroup   holds one accumulator of tile_m x tile_n; walks K in steps of step_k, whose slices of A and W
//               are loaded as tensors. The driver shares them out, stages them and overlaps the steps
//   store       a function that is called for each element does the epilogue; the result is stored as a slice
//
// Tiles at an edge clamp their slices: what lies outside is zero when loaded and left out when stored. Tiles
// within need not, which saves a comparison for each element loaded.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix2 : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/panels.glsl"
#include "products/matmul.h"

layout(push_constant) uniform Push { MatmulParams p; };
layout(set = 0, binding = 0) readonly buffer A { float16_t a[]; };
layout(set = 0, binding = 1) readonly buffer W { float16_t w[]; };
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 3) readonly buffer Scale { float scale[]; };
layout(set = 0, binding = 4) readonly buffer Residual { float residual[]; };
layout(set = 0, binding = 5) writeonly buffer C { OUT c[]; };

#define EPILOGUE_BIAS(column) bias[column]
#define EPILOGUE_SCALE(column) scale[column]
#define EPILOGUE_RESIDUAL(at) residual[at]
#include "lib/epilogue.glsl"

layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint tile_m = 128;
layout(constant_id = 6) const uint tile_n = 128;
layout(constant_id = 7) const uint step_k = 32;
layout(constant_id = 8) const bool whole_steps = false;  // K is a multiple of step_k
layout(constant_id = 9) const uint panel = 16;           // rows of tiles
layout(constant_id = 10) const bool k_by_eight = false;  // K is a multiple of eight
layout(constant_id = 11) const bool n_by_eight = false;  // N likewise

float finish(const in uint row, const in uint column, const in float sum, const in uint first_row,
             const in uint first_column) {
  const uint m = first_row + row, n = first_column + column;
  if (m >= p.m || n >= p.n) return 0.0;
  return epilogue(sum, n, m * p.n + n);
}

#define Rows coopmat<float16_t, gl_ScopeWorkgroup, tile_m, step_k, gl_MatrixUseA>
#define Columns coopmat<float16_t, gl_ScopeWorkgroup, step_k, tile_n, gl_MatrixUseB>
#define Sum coopmat<float, gl_ScopeWorkgroup, tile_m, tile_n, gl_MatrixUseAccumulator>
#define Stored coopmat<OUT, gl_ScopeWorkgroup, tile_m, tile_n, gl_MatrixUseAccumulator>

#define MULTIPLY(CLAMP)                                                                               \
  {                                                                                                   \
    tensorLayoutNV<2, CLAMP> tensor_of_a = createTensorLayoutNV(2, CLAMP);                            \
    tensorLayoutNV<2, CLAMP> tensor_of_w = createTensorLayoutNV(2, CLAMP);                            \
    tensor_of_a = setTensorLayoutStrideNV(setTensorLayoutDimensionNV(tensor_of_a, p.m, p.k), row_k, 1); \
    tensor_of_w = setTensorLayoutStrideNV(setTensorLayoutDimensionNV(tensor_of_w, p.n, p.k), row_k, 1); \
    [[dont_unroll]] for (uint k = 0; k < p.k; k += step_k) {                                          \
      Rows rows;                                                                                      \
      Columns columns;                                                                                \
      coopMatLoadTensorNV(rows, a, 0, sliceTensorLayoutNV(tensor_of_a, first_row, tile_m, k, step_k)); \
      coopMatLoadTensorNV(columns, w, 0, sliceTensorLayoutNV(tensor_of_w, first_column, tile_n, k, step_k), \
                          transposed);                                                                \
      sum = coopMatMulAdd(rows, columns, sum);                                                        \
    }                                                                                                 \
  }

void main() {
  const uint tile = linear_group();
  if (tile >= p.tiles) return;
  const uvec2 place = tile_place(tile, p.tiles_m, p.tiles, panel);
  const uint first_row = place.x * tile_m;
  const uint first_column = place.y * tile_n;
  const bool within = whole_steps && first_row + tile_m <= p.m && first_column + tile_n <= p.n;

  // NVIDIA's compiler loads single values unless it sees that rows begin at 16 bytes.
  const uint row_k = k_by_eight ? p.k & ~7u : p.k, row_n = n_by_eight ? p.n & ~7u : p.n;
  const tensorViewNV<2, false, 1, 0> transposed = createTensorViewNV(2, false, 1, 0);
  Sum sum = Sum(0.0);
  if (within) {
    MULTIPLY(gl_CooperativeMatrixClampModeUndefinedNV)
  } else {
    MULTIPLY(gl_CooperativeMatrixClampModeConstantNV)
  }

  coopMatPerElementNV(sum, sum, finish, first_row, first_column);
  tensorLayoutNV<2, gl_CooperativeMatrixClampModeConstantNV> tensor_of_c =
      createTensorLayoutNV(2, gl_CooperativeMatrixClampModeConstantNV);
  tensor_of_c = setTensorLayoutStrideNV(setTensorLayoutDimensionNV(tensor_of_c, p.m, p.n), row_n, 1);
  coopMatStoreTensorNV(Stored(sum), c, 0, sliceTensorLayoutNV(tensor_of_c, first_row, tile_m, first_column, tile_n));
}
