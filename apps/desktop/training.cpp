#include "apps/desktop/training.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "apps/desktop/engine/model_list.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

std::vector<uint8_t> rgba_of(std::span<const uint8_t> planes, const SampleShape& shape) {
  const size_t pixels = size_t{shape.height} * shape.width;
  std::vector<uint8_t> result(4 * pixels, 255);
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t channel = 0; channel < 3; ++channel)
      result[4 * i + channel] = planes[(shape.channels >= 3 ? channel : 0) * pixels + i];
  }
  return result;
}

}  // namespace

Training::Training(PipelineStore& pipelines, TextureStore& textures, std::function<void()> wake)
    : textures_(textures), session_(pipelines, std::move(wake)), state_(session_.state()) {}

void Training::start(const std::string& config, const std::filesystem::path& data) {
  const std::filesystem::path given = config;
  std::error_code none;
  if (given == given.filename()) {
    const std::filesystem::path named = find_asset("configs").value_or("configs") / (config + ".json");
    if (std::filesystem::exists(named, none))
      return start({.config = read_train_config(named), .data = data}, config);
  }
  if (std::filesystem::is_directory(given, none)) return go_on(given, data);
  start({.config = read_train_config(given), .data = data}, shown(given.stem()));
}

void Training::go_on(const std::filesystem::path& folder, const std::filesystem::path& data) {
  start({.config = read_train_config(settings_in(folder)), .from = folder, .data = data},
        shown((folder / "").parent_path().filename()));
}

void Training::start(TrainingRequest request, std::string name) {
  config_name_ = std::move(name);
  session_.start(std::move(request));
  state_ = session_.state();
}

void Training::toggle_pause() {
  if (state_->stage == TrainingStage::paused) {
    resume();
  } else if (running()) {
    pause();
  }
}

void Training::update() {
  std::shared_ptr<const TrainingState> state = session_.state();
  if (state == state_) return;
  state_ = std::move(state);
  samples_.resize(state_->samples.size());
  shown_pixels_.resize(state_->samples.size());
  for (size_t i = 0; i < samples_.size(); ++i) {
    const auto& pixels = state_->samples[i].pixels;
    if (shown_pixels_[i] == pixels.get() && samples_[i]) continue;
    shown_pixels_[i] = pixels.get();
    samples_[i] =
        textures_.make_or_keep(samples_[i], state_->shape.width, state_->shape.height, Sampling::sharp);
    textures_.write(samples_[i], rgba_of(*pixels, state_->shape));
  }
}

std::vector<CsvRow> Training::rows() const {
  std::vector<CsvRow> rows;
  if (state_->losses.empty()) return rows;
  rows.push_back({"what", "step", "loss", "lowest loss", "highest loss", "accuracy", "samples"});
  for (const CurvePoint& point : state_->losses) {
    rows.push_back({"training", std::to_string(point.last), csv_number(point.mean), csv_number(point.low),
                    csv_number(point.high), "", ""});
  }
  for (const TestPoint& point : state_->tests) {
    rows.push_back({"test", std::to_string(point.step), csv_number(point.loss), "", "",
                    csv_number(point.accuracy), std::to_string(point.samples)});
  }
  return rows;
}

}  // namespace vitrine::desktop
