#include "apps/desktop/engine/digit_reader.h"

#include <chrono>
#include <exception>
#include <utility>

#include "model/files/model_pictures.h"
#include "model/files/weights.h"
#include "model/run/runner.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

// The window's frames share the device with the model, and come in between submissions.
constexpr double slice_seconds = 0.02;

class Reading {
 public:
  Reading(PipelineStore& pipelines, const std::filesystem::path& path)
      : model_(opened(path)),
        values_(model_.preprocess.values(model_.config.channels)),
        runner_(pipelines, model_,
                {.result = Result::probabilities, .plan = {.slice_seconds = slice_seconds}}) {
    const ViTConfig& c = model_.config;
    if (c.classes == 0) {
      throw Error(ErrorCode::bad_file,
                  shown(path) + ": the model has no classes, expected one that reads digits");
    }
    if (c.image_height != c.image_width) {
      throw Error(ErrorCode::bad_file, shown(path) + ": the model takes pictures of " +
                                           std::to_string(c.image_width) + " x " +
                                           std::to_string(c.image_height) + ", expected square ones");
    }
    runner_.executable(1);
  }

  std::vector<std::string> labels() const {
    std::vector<std::string> names;
    for (uint64_t i = 0; i < model_.config.classes; ++i) names.push_back(model_.labels[i]);
    return names;
  }

  std::optional<GreyPicture> framed(std::span<const Stroke> strokes) const {
    return framed_digit(strokes, static_cast<uint32_t>(model_.config.image_height));
  }

  std::vector<float> probabilities(const GreyPicture& picture) {
    std::vector<float> image;
    image.reserve(runner_.image_elements());
    for (uint64_t c = 0; c < model_.config.channels; ++c) {
      for (const uint8_t pixel : picture.pixels) image.push_back(values_[c * 256 + pixel]);
    }
    return runner_.run(image, 1);
  }

 private:
  static Model opened(const std::filesystem::path& path) {
    Model model = open_model({.model = path});
    require_pictures(model);
    return model;
  }

  Model model_;
  std::vector<float> values_;
  Runner runner_;
};

}  // namespace

DigitReader::DigitReader(PipelineStore& pipelines, std::filesystem::path model,
                         std::function<void()> answered)
    : path_(std::move(model)),
      answered_(std::move(answered)),
      thread_([this, &pipelines] { work(pipelines); }) {}

DigitReader::~DigitReader() {
  {
    const std::lock_guard lock(lock_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void DigitReader::ask(const DigitCanvas& canvas) {
  {
    const std::lock_guard lock(lock_);
    if (asked_ == canvas.version()) return;
    asked_ = canvas.version();
    question_ = Question{canvas.version(), canvas.strokes()};
  }
  changed_.notify_all();
}

std::optional<DigitAnswer> DigitReader::answer() const {
  const std::lock_guard lock(lock_);
  return answer_;
}

bool DigitReader::busy() const {
  const std::lock_guard lock(lock_);
  return !error_ && asked_ != done_;
}

std::optional<std::string> DigitReader::error() const {
  const std::lock_guard lock(lock_);
  return error_;
}

std::vector<std::string> DigitReader::labels() const {
  const std::lock_guard lock(lock_);
  return labels_;
}

void DigitReader::work(PipelineStore& pipelines) {
  try {
    answer_all(pipelines);
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(lock_);
      error_ = error.what();
    }
    if (answered_) answered_();
  }
}

std::optional<DigitReader::Question> DigitReader::next_question() {
  std::unique_lock lock(lock_);
  changed_.wait(lock, [&] { return ending_ || question_; });
  if (ending_) return std::nullopt;
  return std::exchange(question_, std::nullopt);
}

void DigitReader::answer_all(PipelineStore& pipelines) {
  Reading reading(pipelines, path_);
  {
    const std::lock_guard lock(lock_);
    labels_ = reading.labels();
  }
  while (const std::optional<Question> question = next_question()) {
    DigitAnswer answer{.version = question->version};
    if (std::optional<GreyPicture> picture = reading.framed(question->strokes)) {
      const auto start = std::chrono::steady_clock::now();
      answer.probabilities = reading.probabilities(*picture);
      answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      answer.seen = std::move(*picture);
    }
    {
      const std::lock_guard lock(lock_);
      done_ = answer.version;
      answer_ = std::move(answer);
    }
    if (answered_) answered_();
  }
}

}  // namespace vitrine::desktop
