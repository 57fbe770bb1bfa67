//! variant f32
// The first eigenvectors of a symmetric positive semidefinite matrix, by subspace iteration in one workgroup:
//   a round     `powers` times V = orthonormal(G V), by Cholesky's factor of the products of the columns;
//               then Rayleigh-Ritz: V is rotated so that V^T G V is diagonal, the largest value first
//   converged   what G v leaves beside its multiple of v is small against how far the value lies above the
//               last one's, for each of the first three: that bounds the vector's error
// The error shrinks by lambda_9 / lambda_3 with every product. A dispatch does a few rounds and nothing once
// it has converged; several of them follow each other, so that none runs for long.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/nonfinite.glsl"
#include "principal_colors.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
#include "lib/reduce.glsl"

layout(push_constant) uniform Push { PrincipalColorsParams p; };
layout(set = 0, binding = 0) readonly buffer Matrix { float matrix[]; };
layout(set = 0, binding = 1) readonly buffer Means { float means[]; };
layout(set = 0, binding = 2) coherent buffer Vectors { float v[]; };   // [order, count]
layout(set = 0, binding = 3) coherent buffer Products { float y[]; };  // the same
layout(set = 0, binding = 4) coherent buffer State { float state[]; };

const uint count = VITRINE_PRINCIPAL_VECTORS;
const uint powers = VITRINE_PRINCIPAL_POWERS;
const float accurate = 2e-4;
// Below this share of the largest eigenvalue there is nothing but rounding errors.
const float noise = 1e-6;

shared float products[count][count];  // of columns
shared float turn[count][count];      // what columns are multiplied with
shared float values[count];
shared float scale;

uint lane() { return gl_LocalInvocationID.x; }

void finish_writes() {
  memoryBarrierBuffer();
  memoryBarrierShared();
  barrier();
}

// Fixed numbers between -1 and 1 without a pattern.
float start_value(uint i) {
  i = (i ^ 61u) ^ (i >> 16);
  i *= 9u;
  i ^= i >> 4;
  i *= 0x27d4eb2du;
  i ^= i >> 15;
  return float(i >> 8) / 8388608.0 - 1.0;
}

// y = G v, by rows; the matrix is read by columns, which lie side by side for side by side invocations.
void multiply() {
  for (uint row = lane(); row < p.order; row += local_size) {
    float sums[count];
    [[unroll]] for (uint j = 0; j < count; ++j) sums[j] = 0.0;
    for (uint k = 0; k < p.order; ++k) {
      const float g = matrix[k * p.order + row];
      [[unroll]] for (uint j = 0; j < count; ++j) sums[j] += g * v[k * count + j];
    }
    [[unroll]] for (uint j = 0; j < count; ++j) y[row * count + j] = sums[j] * scale;
  }
  finish_writes();
}

// products = y^T y, or v^T y; both are symmetric.
void find_products(bool of_y) {
  float sums[count * (count + 1) / 2];
  [[unroll]] for (uint i = 0; i < count * (count + 1) / 2; ++i) sums[i] = 0.0;
  for (uint row = lane(); row < p.order; row += local_size) {
    float left[count], right[count];
    [[unroll]] for (uint j = 0; j < count; ++j) {
      right[j] = y[row * count + j];
      left[j] = of_y ? right[j] : v[row * count + j];
    }
    uint i = 0;
    [[unroll]] for (uint a = 0; a < count; ++a) {
      [[unroll]] for (uint b = a; b < count; ++b) sums[i++] += left[a] * right[b];
    }
  }
  uint i = 0;
  [[unroll]] for (uint a = 0; a < count; ++a) {
    [[unroll]] for (uint b = a; b < count; ++b) {
      const float sum = sum_over_group(sums[i++]);
      if (lane() == 0) products[a][b] = products[b][a] = sum;
    }
  }
  finish_writes();
}

// v = (of_y ? y : v) turn, row by row.
void turn_columns(bool of_y) {
  for (uint row = lane(); row < p.order; row += local_size) {
    float from[count];
    [[unroll]] for (uint j = 0; j < count; ++j) from[j] = of_y ? y[row * count + j] : v[row * count + j];
    [[unroll]] for (uint j = 0; j < count; ++j) {
      float sum = 0.0;
      [[unroll]] for (uint a = 0; a < count; ++a) sum += from[a] * turn[a][j];
      v[row * count + j] = sum;
    }
  }
  finish_writes();
}

// What makes orthonormal columns of those whose products are known: the inverse of Cholesky's factor, after
// all columns were brought to length one. Columns that depend on those before them become small and stay
// finite; a column of zeros stays one.
void find_orthonormal_turn() {
  if (lane() == 0) {
    float lengths[count];
    float factor[count][count], inverse[count][count];
    for (uint j = 0; j < count; ++j) lengths[j] = products[j][j] > 1e-30 ? 1.0 / sqrt(products[j][j]) : 0.0;
    for (uint j = 0; j < count; ++j) {
      for (uint k = 0; k <= j; ++k) {
        float left = products[j][k] * lengths[j] * lengths[k];
        for (uint i = 0; i < k; ++i) left -= factor[j][i] * factor[k][i];
        factor[j][k] = k == j ? sqrt(max(left, 1e-6)) : left / factor[k][k];
      }
    }
    for (uint j = 0; j < count; ++j) {
      for (uint k = 0; k <= j; ++k) {
        float sum = k == j ? 1.0 : 0.0;
        for (uint i = k; i < j; ++i) sum -= factor[j][i] * inverse[i][k];
        inverse[j][k] = sum / factor[j][j];
      }
    }
    for (uint a = 0; a < count; ++a) {
      for (uint j = 0; j < count; ++j) turn[a][j] = a <= j ? lengths[a] * inverse[j][a] : 0.0;
    }
  }
  finish_writes();
}

// Jacobi's rotations: eigenvalues of products[][] to values[], the largest first, eigenvectors to turn[][].
void find_ritz_turn() {
  if (lane() == 0) {
    for (uint a = 0; a < count; ++a) {
      for (uint b = 0; b < count; ++b) turn[a][b] = a == b ? 1.0 : 0.0;
    }
    for (uint sweep = 0; sweep < 8; ++sweep) {
      for (uint a = 0; a + 1 < count; ++a) {
        for (uint b = a + 1; b < count; ++b) {
          const float off = products[a][b];
          if (abs(off) <= 1e-30) continue;
          const float theta = (products[b][b] - products[a][a]) / (2.0 * off);
          const float t = (theta < 0.0 ? -1.0 : 1.0) / (abs(theta) + sqrt(1.0 + theta * theta));
          const float c = 1.0 / sqrt(1.0 + t * t), s = t * c;
          for (uint i = 0; i < count; ++i) {
            const float x = products[i][a], z = products[i][b];
            products[i][a] = c * x - s * z;
            products[i][b] = s * x + c * z;
          }
          for (uint i = 0; i < count; ++i) {
            const float x = products[a][i], z = products[b][i];
            products[a][i] = c * x - s * z;
            products[b][i] = s * x + c * z;
          }
          for (uint i = 0; i < count; ++i) {
            const float x = turn[i][a], z = turn[i][b];
            turn[i][a] = c * x - s * z;
            turn[i][b] = s * x + c * z;
          }
        }
      }
    }
    for (uint a = 0; a < count; ++a) values[a] = products[a][a];
    for (uint a = 0; a + 1 < count; ++a) {
      uint largest = a;
      for (uint b = a + 1; b < count; ++b) {
        if (values[b] > values[largest]) largest = b;
      }
      const float value = values[a];
      values[a] = values[largest];
      values[largest] = value;
      for (uint i = 0; i < count; ++i) {
        const float x = turn[i][a];
        turn[i][a] = turn[i][largest];
        turn[i][largest] = x;
      }
    }
  }
  finish_writes();
}

// Whether the first three vectors are accurate. Called between find_ritz_turn() and turn_columns().
bool converged() {
  bool all = true;
  for (uint j = 0; j < 3; ++j) {
    float partial = 0.0;
    for (uint row = lane(); row < p.order; row += local_size) {
      float product = 0.0, vector = 0.0;
      [[unroll]] for (uint a = 0; a < count; ++a) {
        product += y[row * count + a] * turn[a][j];
        vector += v[row * count + a] * turn[a][j];
      }
      const float left = product - values[j] * vector;
      partial += left * left;
    }
    const float left = sqrt(sum_over_group(partial));
    all = all && (values[j] <= noise * values[0] || left <= accurate * (values[j] - values[count - 1]));
  }
  return all;
}

// The status before anything was iterated, and the factor that brings the matrix's trace to one.
float first_status() {
  float partial = 0.0, mean_partial = 0.0;
  for (uint i = lane(); i < p.order; i += local_size) partial += matrix[i * p.order + i];
  for (uint i = lane(); i < p.width; i += local_size) mean_partial += means[i] * means[i];
  const float trace = sum_over_group(partial), mean_squares = float(p.rows) * sum_over_group(mean_partial);
  if (lane() == 0) scale = 1.0 / trace;
  finish_writes();
  if (!is_finite(trace)) return VITRINE_PRINCIPAL_BROKEN;
  // Rows that differ in nothing but their last bits.
  return trace <= 1e-12 * mean_squares || trace <= 1e-30 ? VITRINE_PRINCIPAL_UNIFORM : VITRINE_PRINCIPAL_RUNNING;
}

void main() {
  float status = first_status();
  if (p.starts == 0) status = max(status, state[VITRINE_PRINCIPAL_STATUS]);
  barrier();  // before the state is written
  if (p.starts != 0) {
    for (uint i = lane(); i < p.order * count; i += local_size)
      v[i] = i % count < p.order ? start_value(i) : 0.0;
    for (uint j = lane(); j < count; j += local_size) state[j] = 0.0;
    finish_writes();
  }
  for (uint round = 0; round < p.rounds && status == VITRINE_PRINCIPAL_RUNNING; ++round) {
    for (uint power = 0; power < powers; ++power) {
      multiply();
      find_products(true);
      find_orthonormal_turn();
      turn_columns(true);
    }
    multiply();
    find_products(false);
    find_ritz_turn();
    if (converged()) status = VITRINE_PRINCIPAL_CONVERGED;
    turn_columns(false);
    for (uint j = lane(); j < count; j += local_size) state[j] = values[j];
    finish_writes();
  }
  if (lane() == 0) state[VITRINE_PRINCIPAL_STATUS] = status;
}
