#include "model/look/patch_features.h"

#include "model/vit/vision_transformer.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/util/error.h"

namespace vitrine {

ValueId patch_features(GraphBuilder& builder, const ViTConfig& config, ValueId tokens) {
  const bool pools =
      config.pool == Pool::token || config.pool == Pool::mean || config.pool == Pool::attention;
  if (!pools || config.neck || config.distilled_head)
    throw Error(ErrorCode::usage, "this model's patches have no features of their own to compare with words");
  // Each patch as a picture that has no other token.
  ViTConfig alone = config;
  alone.class_token = alone.distillation_token = false;
  alone.registers = alone.detection_tokens = 0;
  alone.image_height = config.patch_height;
  alone.image_width = config.patch_width;
  Graph& graph = builder.graph();
  const uint64_t first = config.prefix_tokens(), patches = config.patches();
  if (first) tokens = slice(graph, "patches", tokens, 1, first, first + patches);
  tokens = reshape(graph, "patches.alone", tokens, {patches, 1, config.dim});
  return VisionTransformer(alone).finish(builder, tokens, Result::features);
}

}  // namespace vitrine
