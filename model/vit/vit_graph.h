// A ViTConfig as a graph of operators.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/vit/position_table.h"
#include "model/vit/vision_transformer.h"
#include "model/vit/vit_config.h"
#include "runtime/graph/graph.h"

namespace vitrine {

struct ViTGraphOptions {
  uint64_t batch = 1;
  // f16 stores weights and the inputs and outputs of matrix products in 16 bits. The residual stream,
  // all vectors, the logits and all arithmetic are f32 with either.
  DType dtype = DType::f32;
  std::optional<Result> result;  // natural_result() when left out
  // Layers that differ from dtype: "blocks.7.attn", "blocks.7.mlp", "head", ...
  LayerTypes layers = {};
  BlockTaps taps = {};
  // Another grid of patches than the configuration's, which decides the image's size; see refuses_shapes().
  std::optional<Grid> grid = {};
  // Makes the image [B, C, H, W], f32 and normalised, from inputs of its own. Left out: it is the input
  // "image".
  std::function<ValueId(Graph&)> image = {};
};

// Why one set of weights can't be run for pictures of several shapes; nothing where it can.
std::optional<std::string> refuses_shapes(const ViTConfig& config);

// One output, f32, named after the result, and those of the taps. The constants have the names, shapes
// and (f16: matrices only) dtypes of parameters_of(config). The config must be valid; asking for logits
// without classes is an Error(usage).
std::shared_ptr<const Graph> make_vit_graph(const ViTConfig& config, const ViTGraphOptions& options = {});
// The layers of that graph that options.layers can give a type of their own, in the order of the data.
std::vector<std::string> layers_of(const ViTConfig& config, const ViTGraphOptions& options = {});

}  // namespace vitrine
