// A model run once, looked into on the way: on a picture, or on numbers that are what it is given.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "model/files/weights.h"
#include "model/pictures/picture_input.h"
#include "model/vit/vision_transformer.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

// What is looked at: a picture, whose `name` stands for it in messages, or numbers of one image or several.
struct LookSubject {
  Picture picture = {};
  std::string name = {};
  std::span<const float> numbers = {};  // [B, C, H, W]; empty: it is the picture
};

// The executable behind its run. Layers that f16 can't hold run in f32, of which `warn` is told. The model,
// the pipelines and the weights, which are of that model, must outlive what comes back.
std::unique_ptr<Executable> look_once(WeightStore& weights, PipelineStore& pipelines, const Model& model,
                                      const LookSubject& subject, DType dtype, const PlanOptions& plan,
                                      const BlockTaps& taps, const Warn& warn);

}  // namespace vitrine
