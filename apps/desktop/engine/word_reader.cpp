#include "apps/desktop/engine/word_reader.h"

#include <chrono>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/picture_dataset.h"

namespace vitrine::desktop {
namespace {

// Of labels and words as they were typed, letter by letter.
constexpr size_t most_known = 4096;
constexpr size_t pictures_ahead = 8;
constexpr double slice_seconds = 0.02;

}  // namespace

WordReader::WordReader(PipelineStore& pipelines, const Model& model, std::shared_ptr<WeightStore> weights,
                       DType dtype, Warn warn)
    : pipelines_(pipelines),
      model_(model),
      weights_(std::move(weights)),
      dtype_(dtype),
      warn_(std::move(warn)) {
  text_ = std::make_shared<const TextModel>(open_text_model_of(model, warn_));
  // One at a time: each number of texts together would be a plan of its own, with kernels to compile.
  texts_ = std::make_unique<TextRunner>(pipelines, *text_, TextRunnerOptions{.batch = 1});
}

std::vector<float> WordReader::vector(const std::string& text) {
  const auto known = known_.find(text);
  if (known != known_.end()) return known->second;
  if (known_.size() >= most_known) known_.clear();
  return known_[text] = label_vectors(*texts_, {text}, {});
}

std::vector<float> WordReader::vectors(const std::vector<std::string>& labels, const std::string& pattern,
                                       Progress& progress) {
  std::vector<float> rows;
  for (size_t i = 0; i < labels.size(); ++i) {
    progress.check();
    progress.set_done(static_cast<double>(i) / static_cast<double>(labels.size()));
    const std::vector<float> row = vector(pattern.empty() ? labels[i] : with_label(pattern, labels[i]));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

void WordReader::begin(std::vector<std::filesystem::path> pictures, bool exif) {
  queue_.reset();
  queue_ = std::make_unique<DecodeQueue>(
      encoded_in(pictures),
      DecodeQueueOptions{.decode = decoding(model_.preprocess, exif), .pictures_ahead = pictures_ahead});
}

bool WordReader::go_on(double seconds, Progress& progress, const Take& take) {
  if (!queue_) return false;
  const auto start = std::chrono::steady_clock::now();
  const auto time_is_over = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds;
  };
  take_ = take;
  if (!pictures_) {
    // The window's frames come in between submissions. One picture a batch, as PictureView has it.
    PictureRunnerOptions options{
        .dtype = dtype_, .result = Result::features, .warn = warn_, .batch = 1, .weights = weights_};
    options.plan.slice_seconds = slice_seconds;
    pictures_ =
        std::make_unique<PictureRunner>(pipelines_, model_, model_.preprocess, std::move(options),
                                        [this](uint64_t number, std::span<const float> features) {
                                          take_({.path = std::move(under_way_.extract(number).mapped()),
                                                 .features = {features.begin(), features.end()},
                                                 .error = {}});
                                        });
  }
  bool left = true;
  while (left && !progress.cancelled() && !time_is_over()) {
    std::optional<DecodedPicture> next = queue_->next();
    left = next.has_value();
    if (!left) break;
    try {
      if (!next->image) throw Error(ErrorCode::failed, next->error);
      PicturePart part =
          pictures_->prepare(picture_for(std::move(*next->image), model_.config.channels), shown(next->path));
      // Before it is added, which may deliver it.
      under_way_[read_] = next->path;
      ++read_;
      pictures_->add(std::move(part));
    } catch (const Error& error) {
      take_({.path = next->path, .features = {}, .error = error.what()});
    }
  }
  pictures_->finish();
  take_ = {};
  if (!left) queue_.reset();
  return left;
}

}  // namespace vitrine::desktop
