// Looking inside: the walk of data through the patch embedding and one block, step by step with shapes,
// and a few numbers of each step of the attention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "model/run/module_runner.h"
#include "model/vit/modules.h"

namespace vitrine {

// The numbers that a step shows: always few, whatever the size of the tensor.
struct TraceSlice {
  std::string index;    // as PyTorch would index the step's tensor: "[..., :3, :3, 1]"
  std::string meaning;  // "the first 3 heads x the first 3 tokens at channel 1"
  Shape shape;
  std::vector<float> values;
};

struct TraceStep {
  std::string name;  // "q"
  std::string what;  // "the queries, split into heads"
  Shape shape;
  TraceSlice slice = {};  // without values where the step shows its shape alone
};

struct TraceOptions {
  DType dtype = DType::f32;
  PlanOptions plan = {};
};

// Runs tokens [B, N, dim] through an attention. The result is the module's own (one fused kernel); the
// scores and weights that it never stores are computed anew for the first tokens.
std::vector<TraceStep> trace_attention(PipelineStore& pipelines, const Attention& attention,
                                       ConstantSource& weights, const Tensor& tokens,
                                       const TraceOptions& options = {});

// Runs images [B, channels, height, width] through the model up to the end of block `layer`, which the
// model must have.
std::vector<TraceStep> trace_model(PipelineStore& pipelines, const Model& model, const Tensor& images,
                                   uint64_t layer, const TraceOptions& options = {});

}  // namespace vitrine
