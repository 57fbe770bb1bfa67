//! variant f32 ADDRESSES=0
//! variant f32_quads ADDRESSES=1 needs=addresses,int64 bind=addresses access=rwwwww
// The gradients of what a token sequence was assembled from. One invocation takes one element of the sequence,
// or four that follow each other, through all images: it hands the patches' gradients on and sums over the
// images what is the same in all of them, in chunks of 16, chunk by chunk.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "lib/index.glsl"
#include "assemble_tokens_gradient.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint dims = 768;
layout(constant_id = 2) const bool to_patches = true;  // which gradients are asked for
layout(constant_id = 3) const bool to_class = true;
layout(constant_id = 4) const bool to_distillation = false;
layout(constant_id = 5) const bool to_registers = false;
layout(constant_id = 6) const bool to_positions = true;
layout(constant_id = 7) const bool has_class = true;

#if ADDRESSES
#include "lib/quads.glsl"
layout(push_constant) uniform Push {
  InWords dy;
  OutWords patches, class_token, distillation_token, registers, positions;
  AssembleTokensGradientParams p;
};
#define PIECE vec4
#define LOAD(from, i) load_quad_f32(from, i)
#define STORE(to, i, value) store_quad_f32(to, i, value)
const uint width = dims / 4;
#else
layout(push_constant) uniform Push { AssembleTokensGradientParams p; };
layout(set = 0, binding = 0) readonly buffer DY { float dy[]; };
layout(set = 0, binding = 1) writeonly buffer Patches { float patches[]; };
layout(set = 0, binding = 2) writeonly buffer ClassToken { float class_token[]; };
layout(set = 0, binding = 3) writeonly buffer DistillationToken { float distillation_token[]; };
layout(set = 0, binding = 4) writeonly buffer Registers { float registers[]; };
layout(set = 0, binding = 5) writeonly buffer Positions { float positions[]; };
#define PIECE float
#define LOAD(from, i) from[i]
#define STORE(to, i, value) to[i] = value
const uint width = dims;
#endif

const uint chunk_images = 16;

void main() {
  const uint i = linear_invocation();
  if (i >= p.tokens * width) return;
  const uint token = i / width, d = i % width;
  const bool is_patch = token >= p.prefix;

  PIECE sum = PIECE(0.0);
  for (uint first = 0; first < p.images; first += chunk_images) {
    const uint end = min(first + chunk_images, p.images);
    PIECE chunk = PIECE(0.0);
    for (uint image = first; image < end; ++image) {
      const PIECE value = LOAD(dy, (image * p.tokens + token) * width + d);
      if (to_patches && is_patch) {
        STORE(patches, (image * (p.tokens - p.prefix) + token - p.prefix) * width + d, value);
      }
      chunk += value;
    }
    sum += chunk;
  }

  const uint first_register = p.prefix - p.registers;
  if (token < first_register) {
    const bool is_class = has_class && token == 0;
    if (to_class && is_class) STORE(class_token, d, sum);
    if (to_distillation && !is_class) STORE(distillation_token, d, sum);
  } else if (to_registers && !is_patch) {
    STORE(registers, (token - first_register) * width + d, sum);
  }
  if (!to_positions || token < p.position_from) return;
  if (is_patch) {
    STORE(positions, (token - p.position_from - p.position_skips) * width + d, sum);
  } else if (token < p.prefix - p.position_skips) {
    STORE(positions, (token - p.position_from) * width + d, sum);
  }
}
