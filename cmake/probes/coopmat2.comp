#version 460
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
// Everything of the extension that a shader uses; a glslang knows all of it or none.
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer A { float16_t a[]; };
layout(set = 0, binding = 1) buffer C { float c[]; };
float doubled(const in uint row, const in uint column, const in float element) { return 2.0 * element; }
float larger(const in float x, const in float y) { return max(x, y); }
void main() {
  tensorLayoutNV<2, gl_CooperativeMatrixClampModeConstantNV> tensor =
      createTensorLayoutNV(2, gl_CooperativeMatrixClampModeConstantNV);
  tensor = setTensorLayoutDimensionNV(tensor, 197, 48);
  tensor = setTensorLayoutStrideNV(tensor, 48, 1);
  tensorViewNV<2, false, 1, 0> transposed = createTensorViewNV(2, false, 1, 0);
  coopmat<float16_t, gl_ScopeWorkgroup, 32, 16, gl_MatrixUseA> x;
  coopmat<float16_t, gl_ScopeWorkgroup, 16, 32, gl_MatrixUseB> y;
  coopMatLoadTensorNV(x, a, 0, sliceTensorLayoutNV(tensor, 0, 32, 0, 16));
  coopMatLoadTensorNV(y, a, 0, sliceTensorLayoutNV(tensor, 0, 32, 0, 16), transposed);
  coopmat<float, gl_ScopeWorkgroup, 32, 32, gl_MatrixUseAccumulator> z, highest;
  z = coopMatMulAdd(x, y, coopmat<float, gl_ScopeWorkgroup, 32, 32, gl_MatrixUseAccumulator>(0.0));
  coopMatPerElementNV(z, z, doubled);
  coopMatReduceNV(highest, z, gl_CooperativeMatrixReduceRowNV, larger);
  coopMatStoreTensorNV(z + highest, c, 0, sliceTensorLayoutNV(tensor, 0, 32, 0, 32));
}
