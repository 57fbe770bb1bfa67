// What blocks make of the patches, laid out as a picture: timm's forward_intermediates(), the feature maps of
// transformers' backbones.
//
//   const DenseFeatures features(model.config, {.layers = {5, 11}, .norm = true});
//   Executable executable(weights, make_plan(make_vit_graph(model.config, {.taps = features.taps()}),
//   device));
//   ... run ...
//   std::vector<float> map = features.map(executable, 11);   // [dim, rows, columns]
#pragma once

#include <cstdint>
#include <vector>

#include "model/vit/vision_transformer.h"
#include "runtime/graph/executable.h"

namespace vitrine {

struct DenseFeatureOptions {
  std::vector<uint64_t> layers;  // blocks, from 0 on
  bool norm = false;             // behind the model's last norm or neck, as the last block's tokens are
  bool rows = false;             // a row for each patch instead of a picture for each number
  bool colors = false;           // of the last of the layers, see colors()
};

class DenseFeatures {
 public:
  // Error(usage) where the model has no such block, or no last norm.
  DenseFeatures(const ViTConfig& config, DenseFeatureOptions options);

  // Of each patch's vector: dim, or what the model's neck makes of it.
  uint64_t width() const { return options_.norm ? config_.result_width() : config_.dim; }
  // For ViTGraphOptions::taps. The graph gets the outputs "features.LAYER" [B, dim, patches], or with rows
  // [B, patches, dim], and "features.prefix.LAYER" [B, prefix tokens, dim], f32, and of the colors
  // "features.colors".
  BlockTaps taps() const;

  // Behind a run of a graph with these taps, of one image of its batch: [dim, rows, columns] or [patches,
  // dim], and the class, distillation and register tokens [tokens, dim].
  std::vector<float> map(const Executable& executable, uint64_t layer, uint64_t image = 0) const;
  std::vector<float> prefix(const Executable& executable, uint64_t layer, uint64_t image = 0) const;
  // The first three principal components of the patches (runtime/ops/explain/principal_colors.h) of a graph
  // of one image: RGBA8, row by row.
  std::vector<uint8_t> colors(const Executable& executable) const;

 private:
  std::vector<float> output(const Executable& executable, const char* kind, uint64_t layer, uint64_t image,
                            uint64_t count) const;

  ViTConfig config_;
  DenseFeatureOptions options_;
};

}  // namespace vitrine
