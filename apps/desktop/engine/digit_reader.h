// Says which digit is on a canvas, while somebody draws on it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/desktop/engine/digit_canvas.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine::desktop {

struct DigitAnswer {
  uint64_t version = 0;              // of the canvas that was read
  std::vector<float> probabilities;  // one a class; empty where nothing is drawn
  GreyPicture seen;                  // what the model was shown
  double seconds = 0;                // that the model took
};

// Has a thread of its own, so that no function here waits for the device. Only the newest canvas is read:
// what was asked while the model was busy and changed since is never answered.
class DigitReader {
 public:
  // `model` is a folder that open_model() reads; that, and compiling, happens on the thread. `answered` is
  // called there after every answer and every failure. The pipelines have to outlive this.
  DigitReader(PipelineStore& pipelines, std::filesystem::path model, std::function<void()> answered = {});
  // Waits for the answer that is under way.
  ~DigitReader();
  DigitReader(const DigitReader&) = delete;
  DigitReader& operator=(const DigitReader&) = delete;

  // To be called once a frame: costs nothing while the canvas stays as it is.
  void ask(const DigitCanvas& canvas);
  // The newest there is.
  std::optional<DigitAnswer> answer() const;
  // Something was asked that is not answered yet.
  bool busy() const;
  // Why nothing can be read, in one sentence.
  std::optional<std::string> error() const;
  std::vector<std::string> labels() const;  // one a class; empty until the model is open

 private:
  struct Question {
    uint64_t version = 0;
    std::vector<Stroke> strokes;
  };
  void work(PipelineStore& pipelines);
  std::optional<Question> next_question();
  void answer_all(PipelineStore& pipelines);

  std::filesystem::path path_;
  std::function<void()> answered_;
  mutable std::mutex lock_;  // of all that follows
  std::condition_variable changed_;
  std::optional<Question> question_;
  std::optional<uint64_t> asked_, done_;  // versions
  std::optional<DigitAnswer> answer_;
  std::optional<std::string> error_;
  std::vector<std::string> labels_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace vitrine::desktop
