// A model on a device as Python calls it: from any thread, one call at a time, in the process that opened it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "images/image.h"
#include "model/files/weights.h"
#include "model/look/attention_maps.h"
#include "model/run/picture_runner.h"
#include "model/run/runner.h"
#include "python/src/devices.h"
#include "runtime/util/error.h"

namespace vitrine::python {

// Rows of pixels that somebody else owns: 1 (grey), 3 or 4 bytes each, of which a fourth is dropped.
struct Pixels {
  const uint8_t* data = nullptr;
  uint64_t height = 0, width = 0, channels = 0;
};
// A file's path, its bytes, or pixels.
using PictureSource = std::variant<std::filesystem::path, std::span<const std::byte>, Pixels>;

// What is wrong with one picture.
struct PictureError : Error {
  using Error::Error;
};

// Rows of the pictures that could be read, in order, and the others: which one, and a sentence.
struct PictureRows {
  std::vector<float> values;
  uint64_t rows = 0;
  std::vector<std::pair<uint64_t, std::string>> errors;
};

struct AttentionResult {
  std::vector<float> weights;  // as AttentionMaps::weights
  PatchMap map;
  Image overlay;
};

class Session {
 public:
  // Called between batches and pictures; what it throws ends the call.
  using Between = std::function<void()>;

  Session(const ModelOptions& options, const std::string& device, const std::string& dtype);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Model& model() const;
  const Labels& labels() const;
  // How the model's files become pixels, where the caller doesn't say it.
  const Preprocess& how_to_read() const;
  const Capabilities& capabilities() const;
  DType dtype() const;
  // Shape and numbers of a tensor of the model's files, whether it is computed with or not.
  std::optional<std::pair<std::vector<uint64_t>, std::vector<float>>> file_tensor(
      const std::string& name) const;
  // What was odd since somebody asked last.
  std::vector<std::string> take_warnings();

  // [B, C, H, W], normalised, as `vitrine run`; the results have to be as many as result_shape says.
  void run(std::span<const float> images, std::optional<Result> result, uint64_t batch,
           const Between& between, std::span<float> results);
  // As `vitrine classify` and `embed`. `names` stand for the pictures in messages; `between` is told how many
  // of them are done with.
  PictureRows pictures(const std::vector<PictureSource>& sources, const std::vector<std::string>& names,
                       Result result, uint64_t batch, bool exif,
                       const std::function<void(uint64_t)>& between);
  // As `vitrine preprocess`.
  struct Preprocessed {
    std::vector<float> values;
    uint64_t height = 0, width = 0;
  };
  Preprocessed preprocess(const PictureSource& source, const std::string& name, bool exif);
  // As `vitrine features`: each layer's maps of all images, and the tokens in front of the patches.
  struct Maps {
    std::vector<std::vector<float>> maps, prefixes;  // one a layer
    uint64_t width = 0;                              // of each patch's vector
  };
  Maps maps(std::span<const float> images, const std::vector<uint64_t>& layers, bool norm, bool rows);
  // As `vitrine attention`: of a layer, or rollout where there is none.
  AttentionResult attention(const PictureSource& source, const std::string& name, const MapChoice& choice,
                            bool all_rows, bool exif);

 private:
  struct State;
  std::unique_lock<std::mutex> enter();
  Picture picture_of(const PictureSource& source, const std::string& name, bool exif) const;

  std::unique_ptr<State> state_;
};

}  // namespace vitrine::python
