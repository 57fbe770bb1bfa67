//! variant f16 needs=coopmat,coopmat2,coopmat2_elements,coopmat2_reductions,coopmat2_conversions,coopmat2_tensors,coopmat2_workgroups,fp16,storage16
//! variant f16_flexible STAGED=1 needs=coopmat,coopmat2,coopmat2_elements,coopmat2_reductions,coopmat2_conversions,fp16,storage16,subgroup_control
// softmax(scale * Q K^T) V with an online softmax that never leaves the matrices (VK_NV_cooperative_matrix2):
// f16 times f16, summed in f32; statistics are f32.
//
//   grid        blocks of block_q queries of one head of one batch; neighbours share keys and values
//   workgroup   walks the keys, block_k at a time. Scores, sums of values, and each row's maximum and total,
//               repeated over the columns, are matrices of block_q rows: rows are reduced and elements are
//               computed in place, the weights turn into an operand of the second product
//   operands    with tensor addressing, slices of Q, K and V whose far edges are zeros, held by the workgroup.
//               Without (flexible), a subgroup holds them and they are staged in shared memory
//
// A score of -inf has weight 0; a row of nothing but -inf is NaN, as is one with a NaN or +inf score: the
// maximum may or may not notice a NaN, but each weight does, and carries it into the sum and into every product.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_NV_cooperative_matrix2 : require
#include "lib/types.glsl"
#include "lib/index.glsl"
#include "lib/nonfinite.glsl"
#include "attention/attention.h"

layout(push_constant) uniform Push { AttentionParams p; };
layout(set = 0, binding = 0) readonly buffer Q { float16_t q[]; };
layout(set = 0, binding = 1) readonly buffer K { float16_t k[]; };
layout(set = 0, binding = 2) readonly buffer V { float16_t v[]; };
layout(set = 0, binding = 3) writeonly buffer Out { float16_t result[]; };
layout(set = 0, binding = 4) writeonly buffer Lse { float lse[]; };

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint threads = 128;  // the same number
layout(constant_id = 2) const uint block_q = 64;
layout(constant_id = 3) const uint block_k = 64;
layout(constant_id = 4) const uint key_width = 64;
layout(constant_id = 5) const uint value_width = 64;
layout(constant_id = 6) const uint key_depth = 64;      // key_width and value_width, padded to what the
layout(constant_id = 7) const uint value_columns = 64;  // device takes
layout(constant_id = 8) const bool store_lse = false;

#ifdef STAGED
#define SCOPE gl_ScopeSubgroup
#else
#define SCOPE gl_ScopeWorkgroup
#endif
#define Queries coopmat<float16_t, SCOPE, block_q, key_depth, gl_MatrixUseA>
#define Keys coopmat<float16_t, SCOPE, key_depth, block_k, gl_MatrixUseB>
#define Scores coopmat<float, SCOPE, block_q, block_k, gl_MatrixUseAccumulator>
#define Weights coopmat<float16_t, SCOPE, block_q, block_k, gl_MatrixUseA>
#define Values coopmat<float16_t, SCOPE, block_k, value_columns, gl_MatrixUseB>
#define Mixed coopmat<float, SCOPE, block_q, value_columns, gl_MatrixUseAccumulator>

#define minus_infinity uintBitsToFloat(0xff800000u)

// What is applied to every element. While all scores of a row are -inf, any finite number in place of their
// maximum gives the right weights: zeros.
float score_of(const in uint row, const in uint column, const in float product, const in uint first_key) {
  return first_key + column < p.keys ? product * p.scale : minus_infinity;
}
float higher_of(const in uint row, const in uint column, const in float x, const in float y) { return max(x, y); }
float weight_of(const in uint row, const in uint column, const in float score, const in float maximum) {
  return exp_or_nan(score - (maximum == minus_infinity ? 0.0 : maximum));
}
float quotient_of(const in uint row, const in uint column, const in float sum, const in float total) {
  return sum / total;
}
// Stores; what they return is of no use.
float store_result(const in uint row, const in uint column, const in float mean, const in uint first_query,
                   const in uint head, const in uint batch) {
  if (first_query + row < p.queries && column < value_width) {
    const uint at = ((batch * p.queries + first_query + row) * p.heads + head) * value_width + column;
    result[at] = float16_t(mean);
  }
  return mean;
}
float store_statistics(const in uint row, const in uint column, const in float maximum, const in float total,
                       const in uint first_query, const in uint start) {
  if (column == 0 && first_query + row < p.queries) {
    lse[start + first_query + row] = nan_or(total, maximum + log(total));
  }
  return maximum;
}

// How two elements of a row become one.
float larger(const in float x, const in float y) { return max(x, y); }
float plus(const in float x, const in float y) { return x + y; }
// Of equals, either.
float either(const in float x, const in float y) { return x; }

#ifdef STAGED
// Rows are padded by 16 bytes: eight of them begin in eight groups of banks.
const uint key_pitch = key_depth + 8;
const uint value_pitch = value_columns + 8;
const uint values_at = block_k * key_pitch;
const uint step_end = values_at + block_k * value_pitch;
const uint queries_end = block_q * key_pitch;  // before the first step
shared float16_t memory[step_end > queries_end ? step_end : queries_end];

// Rows from `first` on, up to `count` of them exist; the rest, and columns from the width on, are zero.
#define STAGE(PLACE, PITCH, COLUMNS, ROWS, BUFFER, START, STRIDE, WIDTH, FIRST, COUNT)                       \
  for (uint e = gl_LocalInvocationIndex; e < (ROWS) * (COLUMNS); e += threads) {                             \
    const uint row = (FIRST) + e / (COLUMNS), column = e % (COLUMNS);                                        \
    memory[(PLACE) + e / (COLUMNS) * (PITCH) + column] =                                                     \
        row < (COUNT) && column < (WIDTH) ? BUFFER[(START) + row * (STRIDE) + column] : float16_t(0.0);      \
  }
#endif

void main() {
  const uint work = linear_group();
  if (work >= p.blocks) return;
  const uint query_blocks = (p.queries + block_q - 1) / block_q;
  const uint head = work / query_blocks % p.heads;
  const uint batch = work / query_blocks / p.heads;
  const uint first_query = work % query_blocks * block_q;

  const uint q_start = batch * p.queries * p.q_stride + p.q_offset + head * key_width;
  const uint k_start = batch * p.keys * p.k_stride + p.k_offset + head * key_width;
  const uint v_start = batch * p.keys * p.v_stride + p.v_offset + head * value_width;

  Queries queries;
#ifdef STAGED
  STAGE(0, key_pitch, key_depth, block_q, q, q_start, p.q_stride, key_width, first_query, p.queries)
  barrier();
  coopMatLoad(queries, memory, 0, key_pitch, gl_CooperativeMatrixLayoutRowMajor);
  barrier();
#else
#define TENSOR(NAME, TOKENS, STRIDE, WIDTH)                                    \
  tensorLayoutNV<2, gl_CooperativeMatrixClampModeConstantNV> NAME =            \
      createTensorLayoutNV(2, gl_CooperativeMatrixClampModeConstantNV);        \
  NAME = setTensorLayoutStrideNV(setTensorLayoutDimensionNV(NAME, TOKENS, WIDTH), STRIDE, 1);
  TENSOR(tensor_of_q, p.queries, p.q_stride, key_width)
  TENSOR(tensor_of_k, p.keys, p.k_stride, key_width)
  TENSOR(tensor_of_v, p.keys, p.v_stride, value_width)
  const tensorViewNV<2, false, 1, 0> transposed = createTensorViewNV(2, false, 1, 0);
  coopMatLoadTensorNV(queries, q, q_start, sliceTensorLayoutNV(tensor_of_q, first_query, block_q, 0, key_depth));
#endif

  Mixed mixed = Mixed(0.0);
  Scores maximum = Scores(minus_infinity), total = Scores(0.0);  // the same in all columns of a row
  [[dont_unroll]] for (uint first_key = 0; first_key < p.keys; first_key += block_k) {
    Keys keys;
    Values values;
#ifdef STAGED
    STAGE(0, key_pitch, key_depth, block_k, k, k_start, p.k_stride, key_width, first_key, p.keys)
    STAGE(values_at, value_pitch, value_columns, block_k, v, v_start, p.v_stride, value_width, first_key, p.keys)
    barrier();
    coopMatLoad(keys, memory, 0, key_pitch, gl_CooperativeMatrixLayoutColumnMajor);
    coopMatLoad(values, memory, values_at, value_pitch, gl_CooperativeMatrixLayoutRowMajor);
    barrier();
#else
    coopMatLoadTensorNV(keys, k, k_start, sliceTensorLayoutNV(tensor_of_k, first_key, block_k, 0, key_depth),
                        transposed);
    coopMatLoadTensorNV(values, v, v_start, sliceTensorLayoutNV(tensor_of_v, first_key, block_k, 0, value_columns));
#endif
    Scores scores = coopMatMulAdd(queries, keys, Scores(0.0));
    coopMatPerElementNV(scores, scores, score_of, first_key);

    Scores highest, correction, sum;
    coopMatReduceNV(highest, scores, gl_CooperativeMatrixReduceRowNV, larger);
    coopMatPerElementNV(highest, highest, higher_of, maximum);
    coopMatPerElementNV(correction, maximum, weight_of, highest);
    maximum = highest;
    coopMatPerElementNV(scores, scores, weight_of, maximum);
    coopMatReduceNV(sum, scores, gl_CooperativeMatrixReduceRowNV, plus);
    total = total * correction + sum;

    Mixed factors;
    coopMatReduceNV(factors, correction, gl_CooperativeMatrixReduceRowNV, either);
    mixed = coopMatMulAdd(Weights(scores), values, mixed * factors);
  }

  Mixed divisor;
  coopMatReduceNV(divisor, total, gl_CooperativeMatrixReduceRowNV, either);
  coopMatPerElementNV(mixed, mixed, quotient_of, divisor);
  coopMatPerElementNV(mixed, mixed, store_result, first_query, head, batch);
  if (store_lse) {
    coopMatPerElementNV(maximum, maximum, store_statistics, total, first_query,
                        (batch * p.heads + head) * p.queries);
  }
}
