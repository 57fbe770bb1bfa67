// What vitrine attention and features look at: a picture, or an .npy that holds what a model is given of one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/model_options.h"
#include "apps/cli/picture_options.h"
#include "images/overlay.h"
#include "model/look/attention_maps.h"
#include "model/pictures/picture_input.h"

namespace vitrine::cli {

struct LookFlags {
  ModelFlags model;
  PictureFlags picture;
  std::string image;
};

// Declares the image, --model and its company, --profile and --exif.
void add_look_flags(CLI::App& command, LookFlags& flags);

class LookInput {
 public:
  // Files whose name ends in .npy are float32 [1, C, H, W], already normalised; all else are pictures.
  // overlay() can be called only with shown_as_picture.
  LookInput(const LookFlags& flags, const CommonOptions& common, bool shown_as_picture);

  const Model& model() const { return model_; }

  // Runs the model once with these taps. Layers that f16 can't hold run in f32.
  std::unique_ptr<Executable> run(WeightStore& weights, PipelineStore& pipelines, DType dtype,
                                  const PlanOptions& plan, const BlockTaps& taps) const;

  // The map over the picture; of an .npy over the picture that its numbers show.
  Image overlay(const PatchMap& map) const;

 private:
  std::string path_;
  Model model_;
  std::vector<float> tensor_;  // of an .npy, else none
  Image picture_;
  MapRegion region_;
};

}  // namespace vitrine::cli
