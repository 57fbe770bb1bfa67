// A ViTConfig as a graph of operators.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "model/vit_config.h"
#include "runtime/graph/graph.h"

namespace vitrine {

// What a graph computes of a batch of images.
//   tokens         [B, tokens, dim], behind the last block and the final LayerNorm, if the model has one:
//                  timm's forward_features().
//   features       [B, feature_width]: the tokens pooled (class token or mean of the patches), then
//                  fc_norm, then the representation layer with its tanh: what the head sees, timm's
//                  forward_head(pre_logits=True). With a distilled head, the mean of the class and the
//                  distillation token.
//   logits         [B, classes]: the head's linear layer, before any softmax. With a distilled head, the
//                  mean of the two heads' logits.
//   probabilities  [B, classes]: the softmax of the logits.
enum class Result : uint8_t { logits, probabilities, features, tokens };
std::string_view name_of(Result result);
std::optional<Result> result_named(std::string_view name);
// What the model's own forward pass returns: features without classes, probabilities where softmax is
// part of the model, else logits.
Result natural_result(const ViTConfig& config);

struct ViTGraphOptions {
  uint64_t batch = 1;
  // f16 stores weights and the inputs and outputs of matrix products in 16 bits. The residual stream,
  // all vectors, the logits and all arithmetic are f32 with either.
  DType dtype = DType::f32;
  std::optional<Result> result;  // natural_result() when left out
};

// One input "image" [B, C, H, W] f32, normalised; one output, f32, named after the result. The
// constants have the names, shapes and (f16: matrices only) dtypes of parameters_of(config). The
// config must be valid; asking for logits without classes is an Error(usage).
std::shared_ptr<const Graph> make_vit_graph(const ViTConfig& config, const ViTGraphOptions& options = {});

}  // namespace vitrine
