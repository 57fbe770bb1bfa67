// Texts beside a model's pictures: what its text tower makes of them, and the vectors of a whole folder's
// pictures to be compared with. All but the constructor's arguments is for a worker's job, one at a time.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/desktop/engine/worker.h"
#include "images/decode_queue.h"
#include "model/run/picture_runner.h"
#include "model/text/text_runner.h"

namespace vitrine::desktop {

class WordReader {
 public:
  // Model and pipelines have to outlive it. `weights`: those that the model has been looked with. Throws
  // Error as open_text_model_of() does.
  WordReader(PipelineStore& pipelines, const Model& model, std::shared_ptr<WeightStore> weights, DType dtype,
             Warn warn);
  WordReader(const WordReader&) = delete;
  WordReader& operator=(const WordReader&) = delete;

  std::shared_ptr<const TextModel> text() const { return text_; }

  // A row of length 1 a label, as label_vectors() has them with the template; without one the label is the
  // text. What was read before is remembered: who types changes one label at a time. Throws Cancelled between
  // two of them.
  std::vector<float> vectors(const std::vector<std::string>& labels, const std::string& pattern,
                             Progress& progress);

  // What has become of a picture: its features, or the sentence why there are none.
  struct Found {
    std::filesystem::path path;
    std::vector<float> features;
    std::string error;
  };
  using Take = std::function<void(Found)>;
  // Pictures to be read from now on, instead of what was left. They are decoded ahead of the device.
  void begin(std::vector<std::filesystem::path> pictures, bool exif);
  // Goes on with them for about so many seconds, or until the job is cancelled; false once all are read.
  bool go_on(double seconds, Progress& progress, const Take& take);

 private:
  std::vector<float> vector(const std::string& text);

  PipelineStore& pipelines_;
  const Model& model_;
  std::shared_ptr<WeightStore> weights_;
  DType dtype_;
  Warn warn_;
  std::shared_ptr<const TextModel> text_;
  std::unique_ptr<TextRunner> texts_;
  std::map<std::string, std::vector<float>> known_;
  std::unique_ptr<PictureRunner> pictures_;
  std::unique_ptr<DecodeQueue> queue_;
  uint64_t read_ = 0;                                    // pictures that the runner was given
  std::map<uint64_t, std::filesystem::path> under_way_;  // by their numbers there
  Take take_;
};

}  // namespace vitrine::desktop
