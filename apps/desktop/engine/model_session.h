// A model on a device and what it is asked: what it sees, how it is made, where its time goes. Everything
// that takes time is for a worker's job, with its Progress; one thread at a time may use a session. When it
// ends it gives back all of the device's memory that it took.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/desktop/engine/model_list.h"
#include "apps/desktop/engine/profile_bars.h"
#include "apps/desktop/engine/word_reader.h"
#include "apps/desktop/engine/worker.h"
#include "images/image.h"
#include "model/look/picture_view.h"
#include "model/look/structure.h"
#include "model/run/storage_type.h"
#include "model/run/top_answers.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::desktop {

// For jobs that run a model: goes on until the job is cancelled, and shows how far it is.
GoOn go_on(Progress& progress);

struct LookResult {
  Image picture;                // as the model sees it, before it is resized
  int orientation = 1;          // that the file's EXIF data asks for, 1 to 8; 1: none
  MapRegion region;             // where the patches lie in it
  std::vector<TopAnswer> top;   // the likeliest classes, of a model with classes
  std::string no_answer;        // of one without: says so, and what there is instead
  std::vector<float> features;  // of one without: what it makes of the picture
  double seconds = 0;           // that the inference took
  double images_per_second() const { return seconds > 0 ? 1 / seconds : 0; }
};

class ModelSession {
 public:
  static constexpr uint64_t top_count = 10;
  // How long the device works for the model before others get their turn, about: a frame of the window.
  static constexpr double slice_seconds = 0.02;

  // `dtype`: as --dtype. The pipelines have to outlive the session. Throws Cancelled, and Error as
  // open_model() does.
  static std::unique_ptr<ModelSession> open(PipelineStore& pipelines, const ModelChoice& choice,
                                            std::string_view dtype, Progress& progress);
  ModelSession(const ModelSession&) = delete;
  ModelSession& operator=(const ModelSession&) = delete;

  const ModelChoice& choice() const { return choice_; }
  const Model& model() const { return model_; }
  const Preprocess& preprocess() const { return model_.preprocess; }
  DType dtype() const { return dtype_; }
  PictureView& view() { return *view_; }
  // Sentences about what was odd since the last call, each once.
  std::vector<std::string> take_warnings();

  // Runs the model: probabilities and labels are those of `vitrine classify`. Throws Cancelled, and Error
  // that names the picture where it can't be read or shown to the model. `exif`: turned as its EXIF data
  // asks.
  LookResult look(const std::filesystem::path& path, Progress& progress, bool exif = false);
  LookResult look(Image picture, const std::string& name, Progress& progress);

  // Whether there are texts to compare pictures with; and who reads them, opened when first asked for. Throws
  // Error where its files can't be read.
  bool has_words() const { return has_words_; }
  WordReader& words();
  // How like each patch of the picture that was looked at is to a text's vector, which has length 1. Needs a
  // look() before.
  std::vector<float> similarities(std::span<const float> words, Progress& progress);

  // One image through the model, part by part.
  std::vector<StructureNode> structure() const;
  // The measured time of every operator of one inference. Needs a look() before.
  ProfileResult profile(Progress& progress);

 private:
  ModelSession(PipelineStore& pipelines, const ModelChoice& choice, std::string_view dtype,
               Progress& progress);
  Warn warn();

  PipelineStore& pipelines_;
  ModelChoice choice_;
  std::vector<std::string> warnings_;
  DType dtype_;
  Model model_;
  Labels labels_;
  bool has_words_ = false;
  std::unique_ptr<PictureView> view_;
  std::unique_ptr<WordReader> words_;
  std::optional<std::vector<float>> patches_;  // features of those of the picture that was looked at
};

// A device's capabilities as `vitrine devices` prints them, and the memory that is in use now.
std::vector<DeviceFact> facts_of(const Device& device);

}  // namespace vitrine::desktop
