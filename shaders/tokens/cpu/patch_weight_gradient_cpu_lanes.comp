//! variant f32 needs=addresses,int64,subgroup_control bind=addresses access=rrw
// patch_weight_gradient.comp for devices that run a workgroup on a CPU core. A workgroup is one subgroup, whose lanes lie along
// columns of dy; each multiplies its own by some neighbouring pixels of a patch, whose addresses all lanes share, for as
// many patches as lie alike in every chunk of them: rows of patches of an image, or whole images. All is in line, without a
// loop, as devices of which Capabilities::loops_gather holds want it. weight_gradient_cpu_sums.comp adds up the chunks.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_basic : require
#include "lib/own.glsl"
#include "tokens/patch_weight_gradient.h"
#define PATCHES_FIRST_ID 6
#define PATCHES_PLACES_ALONE
#include "lib/patches.glsl"
layout(local_size_x_id = 0) in;                // lanes
layout(constant_id = 1) const uint lanes = 8;  // of a subgroup, which has exactly this size
layout(constant_id = 2) const uint n = 16;
layout(constant_id = 3) const uint k = 768;
layout(constant_id = 4) const uint sums = 16;  // of a lane: a divisor of patch_width
layout(constant_id = 5) const uint chunk = 49;  // patches of a workgroup

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) writeonly buffer Sums { float v[]; };
layout(push_constant) uniform Push {
  Floats dy;
  Floats images;
  Sums dw;  // of each chunk
  PatchWeightGradientLanesParams p;
};
#include "lib/known.glsl"

DEFINE_OWN_OF(Floats, float)

const uint panels = (n + lanes - 1) / lanes;

void main() {
  // Panels of the same pixels follow each other.
  const uint piece = known_4_digits(gl_WorkGroupID.x), number = known_4_digits(gl_WorkGroupID.y);
  const uint panel = piece % panels, strip = piece / panels;
  Floats from_y = Floats(uint64_t(dy) + 4ul * (number * chunk * n + panel * lanes));
  Floats from_x = Floats(uint64_t(images) + 4ul * (patch_start(number * chunk) + patch_offset(strip * sums)));

  float sum[sums];
  [[unroll]] for (uint i = 0; i < sums; ++i) sum[i] = 0.0;
  [[unroll]] for (uint row = 0; row < chunk; ++row) {
    const float own = own_of(from_y, row * n);
    [[unroll]] for (uint i = 0; i < sums; ++i) sum[i] += own * from_x.v[patch_start(row) + i];
  }

  // What each is to have in one piece, see lib/product_chunk.glsl.
  float kept[2 * sums];
  const uint one = p.digits[1];
  [[unroll]] for (uint i = 0; i < sums; ++i) kept[2 * i] = sum[i];
  const uint two = p.digits[2];
  [[unroll]] for (uint i = 0; i < sums; ++i) kept[2 * i + 1] = sum[i];

  const uint column = panel * lanes + gl_SubgroupInvocationID;
  if (column >= n) return;
  uint to = (number * n + column) * k + strip * sums;
  uint i = two - one - 1;
  do {
    dw.v[to] = kept[2 * i];
    ++to;
  } while (++i < sums);
}
