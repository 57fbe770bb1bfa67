// Linear heads on a model's feature maps: what stands at each place of a picture, or how far away it is. Read
// as DINOv2 and DINOv3 save them when they evaluate: one layer over the patches' features, with a BatchNorm
// in front where there is one.
//
//   const LinearHead head = read_linear_head("head.safetensors");
//   const HeadInput input = head_input(head, model.config, {});
//   const DenseFeatures dense(model.config, {.layers = input.layers, .norm = input.norm, .rows = true});
//   ... run the model with dense.taps() ...
//   const std::vector<float> logits = head_logits(pipelines, head, input, dense, executable);
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "model/look/dense_features.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

struct LinearHead {
  enum class Task : uint8_t { classes, depth };
  enum class Family : uint8_t { dinov2, dinov3 };  // whose names the file has, and so whose habits
  Task task = Task::classes;
  Family family = Family::dinov2;
  uint64_t inputs = 0, outputs = 0;
  std::vector<float> weight, bias;  // [outputs, inputs], [outputs]; what the BatchNorm does is in them
};

// The state of a head as a .safetensors file. Throws Error(bad_file) for what is no linear head, by name.
LinearHead read_linear_head(const std::filesystem::path& path);

// What of a model a head sees: these blocks' maps one behind the other, each with the class token behind it
// where that goes along.
struct HeadInput {
  std::vector<uint64_t> layers;
  bool norm = false, class_token = false;
};
struct HeadChoice {
  std::vector<uint64_t> layers = {};  // empty: as the head's makers have them
  std::optional<bool> norm = {};
};
// Throws Error(bad_file) where the head is of another width, and where what it doesn't say has to be asked
// for.
HeadInput head_input(const LinearHead& head, const ViTConfig& config, const HeadChoice& choice);

// [patches, outputs], of one image behind a run with the taps of `dense`, whose maps are rows.
std::vector<float> head_logits(PipelineStore& pipelines, const LinearHead& head, const HeadInput& input,
                               const DenseFeatures& dense, const Executable& executable);

// How a grid of vectors becomes a larger picture: bilinear, as PyTorch resizes without aligned corners.
struct Extent {
  uint64_t height = 0, width = 0;
  bool operator==(const Extent&) const = default;
};
std::vector<float> resized(std::span<const float> rows, Extent from, Extent to);

// The likeliest class of every pixel, row by row.
std::vector<uint32_t> classes_of(std::span<const float> logits, Extent grid, Extent size);
// How far every pixel is away: the mean of evenly spaced distances between these two, each weighed by its
// rectified logit, or that itself for a head with one output.
struct DepthRange {
  double least = 0, most = 0;
};
std::vector<float> depths_of(const LinearHead& head, std::span<const float> logits, Extent grid, Extent size,
                             DepthRange range);

}  // namespace vitrine
