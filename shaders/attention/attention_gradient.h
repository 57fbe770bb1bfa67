// Parameters of attention_gradient_tiled.comp and attention_gradient_deltas.comp. Strides and offsets count
// elements.
#ifndef VITRINE_ATTENTION_GRADIENT_H
#define VITRINE_ATTENTION_GRADIENT_H
#include "lib/shared.h"

VITRINE_SHARED_BEGIN

// Head h of row n of an image lies at (image * rows + n) * stride + offset + h * width. A workgroup's own rows
// are queries or keys; it walks the others.
struct AttentionGradientParams {
  uint own;  // rows of one image
  uint others;
  uint heads;
  uint own_key_stride;  // where q is, if own rows are queries; else k
  uint own_key_offset;
  uint own_value_stride;  // where the result's gradient is, or v
  uint own_value_offset;
  uint other_key_stride;
  uint other_key_offset;
  uint other_value_stride;
  uint other_value_offset;
  float scale;
  uint blocks;  // pieces of work in all
  uint drop_stream;  // where weights are dropped: see lib/philox.glsl
  uint drop_threshold;
  float drop_factor;
};
VITRINE_SHARED_SIZE(AttentionGradientParams, 64);

struct AttentionDeltasParams {
  uint count;  // of all images, heads and queries
  uint queries;
  uint heads;
};
VITRINE_SHARED_SIZE(AttentionDeltasParams, 12);

VITRINE_SHARED_END
#endif
