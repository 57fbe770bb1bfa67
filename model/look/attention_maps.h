// Who looks at whom: a model's attention weights beside its result, from the same submission. The fused
// attention kernel stays; it stores one more number a row, its log-sum-exp, and the rows that are asked
// for are computed from that again.
//
//   const AttentionMaps maps(model.config, {.layers = {11}});
//   Executable executable(weights, make_plan(make_vit_graph(model.config, {.taps = maps.taps()}), device));
//   ... run ...
//   PatchMap map = maps.map(executable, {.layer = 11, .head = 3});
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/pictures/preprocess.h"
#include "model/vit/vision_transformer.h"
#include "runtime/graph/executable.h"

namespace vitrine {

// Whose attention: `count` tokens from `first` on, or their mean.
struct MapRows {
  uint64_t first = 0, count = 1;
  bool mean = false;
  uint64_t stored() const { return mean ? 1 : count; }
  bool operator==(const MapRows&) const = default;
};
bool has_attention_pool(const ViTConfig& config);
// How many heads have a map of this layer, those of a block's attentions one behind the other, and to how
// many tokens each looks: to the last ones. Attention pooling, the layer behind the last block, has its own
// of both.
uint64_t heads_of_maps(const ViTConfig& config, std::optional<uint64_t> layer);
uint64_t keys_of_maps(const ViTConfig& config, std::optional<uint64_t> layer);
// Those that the model's result is made of: the class token's row, or the mean of the rows of all that is
// pooled.
MapRows pooled_rows(const ViTConfig& config);
std::string pooled_name(const ViTConfig& config);  // of several: "mean of the patches"
MapRows all_rows(const ViTConfig& config);

struct AttentionMapOptions {
  // Whose weights are wanted, from 0 on. One behind the last block is attention pooling, in models that
  // have it: what its learned query looks at, one row of weights for the tokens that are pooled.
  std::vector<uint64_t> layers;
  // Rollout (Abnar & Zuidema 2020) through all layers: A_L ... A_1 with A = (mean of heads + I) / 2 and
  // its rows normalised.
  bool rollout = false;
  std::optional<MapRows> rows = {};  // of layers and rollout; pooled_rows() when left out
};

// One map out of what was computed.
struct MapChoice {
  std::optional<uint64_t> layer = {};  // none: rollout
  std::optional<uint64_t> head = {};   // none: the mean of all heads
  std::optional<uint64_t> token = {};  // none: pooled_rows()
};

// Weights of the patches, row by row as they lie in the image. Those of differential attention are a softmax
// less a share of another: some are negative.
struct PatchMap {
  uint64_t height = 0, width = 0;
  std::vector<float> weights;
};

// Where the patches lie in a picture that was resized and cropped for the model, in the picture's own
// pixels. A model of whole patches doesn't see the pixels that are left over at the right and the bottom.
struct MapRegion {
  double left = 0, top = 0, width = 0, height = 0;
};
MapRegion map_region(const ViTConfig& config, const PictureGeometry& geometry, uint64_t picture_height,
                     uint64_t picture_width);

class AttentionMaps {
 public:
  // Error(usage) where a layer or token is asked for that the model has not, or maps that there are none of.
  AttentionMaps(const ViTConfig& config, AttentionMapOptions options);

  const MapRows& rows() const { return rows_; }
  // For ViTGraphOptions::taps. The graph gets the outputs "attention.LAYER" [B, heads, rows, tokens]
  // (attention pooling: [B, heads, 1, patches]) and "rollout" [B, rows, tokens], f32.
  BlockTaps taps() const;

  // Behind a run of a graph with these taps: all weights of one image, heads by rows by tokens (attention
  // pooling: heads by patches), or rows by tokens for rollout.
  std::vector<float> weights(const Executable& executable, std::optional<uint64_t> layer, uint64_t image = 0,
                             uint32_t set = 0) const;
  // One row of `tokens` weights; attention pooling gives none to tokens that are no patches. Error(usage) for
  // what was not computed.
  std::vector<float> row(const Executable& executable, const MapChoice& choice, uint64_t image = 0,
                         uint32_t set = 0) const;
  // The patches' part of that row.
  PatchMap map(const Executable& executable, const MapChoice& choice, uint64_t image = 0,
               uint32_t set = 0) const;

 private:
  ViTConfig config_;
  AttentionMapOptions options_;
  MapRows rows_;
};

}  // namespace vitrine
