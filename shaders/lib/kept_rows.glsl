// Rows that subgroups keep in registers, so that memory is read once and written once. One subgroup has a row, or
// several share one (runtime/ops/norms/kept_rows.h says how many). The including shader's own constants follow from
// id 6.
//
// A lane holds `fours` vec4 of each tensor. Where the width is a multiple of four, a vec4 is four neighbours, moved at
// once, and lanes lie side by side; two such are neighbours where eight halves are 16 bytes. Else the components of a
// vec4 are as many elements apart as lanes have the row.
//
// All loads of a row can be under way at once: there is no branch around them. Lanes past the row's end hold its
// first elements instead, which only_of_row leaves out of sums.
#ifndef VITRINE_KEPT_ROWS_GLSL
#define VITRINE_KEPT_ROWS_GLSL

#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require  // to index f16vec4; no arithmetic
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "lib/index.glsl"
#include "lib/tile.glsl"
#include "lib/types.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint local_size = 64;
layout(constant_id = 1) const uint lanes = 32;           // of a subgroup, which has exactly this size
layout(constant_id = 2) const uint row_lanes = 32;       // that have a row: those of one subgroup, or of the workgroup
layout(constant_id = 3) const uint width = 768;
layout(constant_id = 4) const bool by_fours = false;     // the width is a multiple of four
layout(constant_id = 5) const bool by_eights = false;    // of eight, and all tensors are f16
layout(constant_id = 6) const bool shares_rows = false;  // row_lanes is more than a subgroup

// Of what a lane holds: pieces that are 16 bytes or less, and vec4s of these.
const uint piece_fours = by_eights ? 2 : 1;
const uint row_pieces = by_fours ? width / (4 * piece_fours) : width;
const uint round_pieces = row_lanes * (by_fours ? 1 : 4);  // that all lanes take with their i-th
const uint pieces = (row_pieces + round_pieces - 1) / round_pieces;
const uint fours = pieces * piece_fours;
const uint row_fours = width / 4;

#define EACH_FOUR(q) [[unroll]] for (uint q = 0; q < fours; ++q)

uint kept_row() { return linear_group() * (local_size / row_lanes) + (shares_rows ? 0 : gl_SubgroupID); }
uint kept_lane() { return gl_SubgroupInvocationID + (shares_rows ? gl_SubgroupID * lanes : 0); }

// Whether the row has this lane's i-th piece: known to the compiler but for the last one.
bool has_piece(uint i) { return (i + 1) * row_lanes <= row_pieces || i * row_lanes + kept_lane() < row_pieces; }
// The column of component c of vec4 q where these are apart.
uint column_of(uint q, uint c) { return (q * 4 + c) * row_lanes + kept_lane(); }
bool has_column(uint q, uint c) { return (q * 4 + c + 1) * row_lanes <= width || column_of(q, c) < width; }
// Which of the row's vec4s vec4 q is where they are whole.
uint four_of(uint q) {
  const uint i = q / piece_fours;
  return (has_piece(i) ? i * row_lanes + kept_lane() : 0) * piece_fours + q % piece_fours;
}

// The value where the row has it, else `other`.
vec4 only_of_row(uint q, vec4 value, float other) {
  if (by_fours) return has_piece(q / piece_fours) ? value : vec4(other);
  [[unroll]] for (uint c = 0; c < 4; ++c) value[c] = has_column(q, c) ? value[c] : other;
  return value;
}

// Defines NAME(row, q), vec4 q of a row of a buffer that is declared in groups of four.
#define DEFINE_LOAD(NAME, BUFFER)                                                 \
  vec4 NAME(uint row, uint q) {                                                   \
    if (by_fours) return vec4(BUFFER[row * row_fours + four_of(q)]);              \
    vec4 value;                                                                   \
    [[unroll]] for (uint c = 0; c < 4; ++c) {                                     \
      const uint at = row * width + (has_column(q, c) ? column_of(q, c) : 0);     \
      value[c] = element_of(BUFFER, at);                                          \
    }                                                                             \
    return value;                                                                 \
  }

// Stores VALUE, an expression of q, as the row's vec4s; the buffer's type is OUT4, that of its elements OUT. Each lane
// writes what it alone has read: the buffer's memory may be that of what was loaded.
#define STORE_ROW(BUFFER, row, q, VALUE)                                                \
  [[unroll]] for (uint i = 0; i < pieces; ++i) {                                        \
    if (by_fours) {                                                                     \
      if (has_piece(i)) {                                                               \
        [[unroll]] for (uint f = 0; f < piece_fours; ++f) {                             \
          const uint q = i * piece_fours + f;                                           \
          const uint at = (i * row_lanes + kept_lane()) * piece_fours + f;              \
          BUFFER[row * row_fours + at] = OUT4(VALUE);                                   \
        }                                                                               \
      }                                                                                 \
    } else {                                                                            \
      const uint q = i;                                                                 \
      const vec4 value = VALUE;                                                         \
      [[unroll]] for (uint c = 0; c < 4; ++c) {                                         \
        const uint at = row * width + column_of(q, c);                                  \
        if (has_column(q, c)) BUFFER[at >> 2][at & 3] = OUT(value[c]);                  \
      }                                                                                 \
    }                                                                                   \
  }

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }
float highest_of(vec4 v) { return max(max(v.x, v.y), max(v.z, v.w)); }

// Sums and maxima over a row, in a fixed order; each lane of the row gets them. Where subgroups share it, each
// call needs a slot of its own below `slots`, which the including shader defines.
shared float of_subgroups[slots * (shares_rows ? row_lanes / lanes : 1)];

#define DEFINE_OVER_ROW(NAME, OPERATION, JOIN)                                                 \
  float NAME(float value, const uint slot) {                                                   \
    const float own = OPERATION(value);                                                        \
    if (!shares_rows) return own;                                                              \
    const uint subgroups = row_lanes / lanes, first = slot * subgroups;                        \
    if (gl_SubgroupInvocationID == 0) of_subgroups[first + gl_SubgroupID] = own;               \
    barrier();                                                                                 \
    float result = of_subgroups[first];                                                        \
    [[unroll]] for (uint i = 1; i < subgroups; ++i) result = JOIN(result, of_subgroups[first + i]); \
    return result;                                                                             \
  }
#define JOIN_SUM(a, b) a + b
DEFINE_OVER_ROW(sum_over_row, subgroupAdd, JOIN_SUM)
// A NaN may or may not win against a number.
DEFINE_OVER_ROW(max_over_row, subgroupMax, max)

#endif
