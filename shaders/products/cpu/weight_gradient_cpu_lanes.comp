//! variant f32 needs=addresses,int64,subgroup_control bind=addresses access=rrww
// weight_gradient.comp for devices that run a workgroup on a CPU core. A workgroup is one subgroup, and its lanes lie
// along columns of dy, which all lanes read and each keeps its own of: one vector load to the driver (see
// lib/own.glsl). Each lane multiplies it by some columns of x, whose addresses all lanes share, so that they
// cost no load of their own. Where several groups lie in the lanes, each is multiplied by the slices of all, and
// writes what its own gave. A workgroup has some rows, whose sums weight_gradient_cpu_sums.comp adds to the others'.
//
// On devices of which Capabilities::loops_gather holds a workgroup has one chunk of rows, without a loop and with
// addresses of which the compiler knows that all lanes share them (`straight`); the rows that are left over are a
// workgroup of a dispatch of their own (`gathers`), where each lane loads its own.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/own.glsl"
#include "products/weight_gradient.h"
layout(local_size_x_id = 0) in;                // lanes
layout(constant_id = 1) const uint lanes = 8;  // of a subgroup, which has exactly this size
layout(constant_id = 2) const uint n = 8;      // of a group
layout(constant_id = 3) const uint k = 8;
layout(constant_id = 4) const uint groups = 1;
layout(constant_id = 5) const uint slices = 1;
layout(constant_id = 6) const uint groups_each = 1;  // of a workgroup: a divisor of slices; more than one fit the lanes
layout(constant_id = 7) const uint sums = 8;         // of a lane: columns of x
layout(constant_id = 8) const uint chunk = 64;       // rows that are summed before they are added to the others
layout(constant_id = 9) const bool has_chunks = true;
layout(constant_id = 10) const bool has_rest = true;  // rows behind the last chunk
layout(constant_id = 11) const bool has_bias = true;
layout(constant_id = 12) const bool straight = false;
layout(constant_id = 13) const bool gathers = false;
const uint unroll = 8;  // divides chunk

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Sums { float v[]; };
layout(push_constant) uniform Push {
  Floats dy;
  Floats x;
  Sums dw;  // of each workgroup in y
  Sums db;
  WeightGradientLanesParams p;
};
#include "lib/known.glsl"

const uint width_y = groups * n, width_x = slices * k;
const uint span = groups_each * k;                            // columns of x that a block of groups goes with
const uint strips = (span + sums - 1) / sums;                 // of a span
const uint vectors = (groups_each * n + lanes - 1) / lanes;  // of a block

DEFINE_OWN_OF(Floats, float)

struct Totals {
  float dw[sums];
  float db;
};

void clear(out Totals totals) {
  [[unroll]] for (uint i = 0; i < sums; ++i) totals.dw[i] = 0.0;
  totals.db = 0.0;
}

void add_row(Floats from_y, Floats from_x, uint row, inout Totals totals) {
  const float own = gathers ? from_y.v[row * width_y + gl_SubgroupInvocationID] : own_of(from_y, row * width_y);
  [[unroll]] for (uint i = 0; i < sums; ++i) totals.dw[i] += own * from_x.v[row * width_x + i];
  if (has_bias) totals.db += own;
}

void add(inout Totals totals, Totals part) {
  [[unroll]] for (uint i = 0; i < sums; ++i) totals.dw[i] += part.dw[i];
  totals.db += part.db;
}

// All sums of the workgroup's rows: what it is to have in one piece, see lib/product_chunk.glsl.
float kept[2 * sums + 2];

void keep(Totals totals) {
  const uint one = p.digits[1];
  [[unroll]] for (uint i = 0; i < sums; ++i) kept[2 * i] = totals.dw[i];
  kept[2 * sums] = totals.db;
  const uint two = p.digits[2];
  [[unroll]] for (uint i = 0; i < sums; ++i) kept[2 * i + 1] = totals.dw[i];
  kept[2 * sums + 1] = totals.db + float(two - one - 1);
}

void main() {
  const uint piece = straight ? known_4_digits(gl_WorkGroupID.x) : gl_WorkGroupID.x;
  const uint part_of_rows = p.first_part + (straight ? known_4_digits(gl_WorkGroupID.y) : gl_WorkGroupID.y);
  const uint strip = piece % strips;
  const uint vector = piece / strips % vectors;
  const uint first_group = piece / (strips * vectors) * groups_each;
  const uint first_y = first_group * n + vector * lanes;
  const uint first_x = first_group % slices * k + strip * sums;
#define ROW_Y(row) Floats(uint64_t(dy) + 4ul * (width_y * (row) + first_y))
#define ROW_X(row) Floats(uint64_t(x) + 4ul * (width_x * (row) + first_x))

  Totals totals;
  clear(totals);
  uint row = part_of_rows * p.rows_each;
  if (straight) {
    Floats from_y = ROW_Y(row), from_x = ROW_X(row);
    [[unroll]] for (uint i = 0; i < chunk; ++i) add_row(from_y, from_x, i, totals);
    keep(totals);
  }
  const uint end = gl_WorkGroupID.y + 1 == gl_NumWorkGroups.y ? p.rows : row + p.rows_each;
  // A loop may run once more with no lane active, and what it reads then must exist: hence min().
  if (has_chunks && !straight) {
    do {
      const uint first = min(row, p.rows - chunk);
      Totals part;
      clear(part);
      [[dont_unroll]] for (uint i = 0; i < chunk; i += unroll) {
        Floats from_y = ROW_Y(first + i), from_x = ROW_X(first + i);
        [[unroll]] for (uint u = 0; u < unroll; ++u) add_row(from_y, from_x, u, part);
      }
      add(totals, part);
      row += chunk;
    } while (row + chunk <= end);
  }
  if (has_rest && !straight) {
    Totals part;
    clear(part);
    for (; row < end; ++row) {
      const uint at = min(row, p.rows - 1);
      add_row(ROW_Y(at), ROW_X(at), 0, part);
    }
    add(totals, part);
  }

  const uint column = vector * lanes + gl_SubgroupInvocationID;  // of the block
  if (column >= groups_each * n) return;
  const uint at = part_of_rows * width_y + first_group * n + column;
  if (straight) {
    [[dont_unroll]] for (uint i = 0; i < sums; ++i) {
      const uint other = strip * sums + i;
      if (other < span && other / k == column / n) dw.v[at * k + other % k] = kept[2 * i];
    }
  } else {
    [[unroll]] for (uint i = 0; i < sums; ++i) {
      const uint other = strip * sums + i;
      if (other < span && other / k == column / n) dw.v[at * k + other % k] = totals.dw[i];
    }
  }
  if (has_bias && strip == 0) db.v[at] = straight ? kept[2 * sums] : totals.db;
}
