// A training as the window shows it: state of the UI thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/desktop/engine/export.h"
#include "apps/desktop/engine/training_session.h"
#include "apps/desktop/gpu/texture.h"

namespace vitrine::desktop {

class Training {
 public:
  Training(PipelineStore& pipelines, TextureStore& textures, std::function<void()> wake);

  // `config` is the name of a file in configs/, a file, or a folder for go_on(). Without data, digits are
  // drawn here. Error where the configuration can't be read.
  void start(const std::string& config, const std::filesystem::path& data);
  // With the training that was saved to this folder, on the same data.
  void go_on(const std::filesystem::path& folder, const std::filesystem::path& data);
  void pause() { session_.pause(); }
  void resume() { session_.resume(); }
  void toggle_pause();
  void stop() { session_.stop(); }
  void close() { session_.close(); }  // lets the training go
  void save(const std::filesystem::path& folder) { session_.save(folder); }

  void update();  // once a frame

  const TrainingState& state() const { return *state_; }
  const std::string& config_name() const { return config_name_; }
  // One a sample of the state, in the same order.
  const std::vector<TexturePointer>& samples() const { return samples_; }
  bool running() const { return state_->busy(); }
  bool busy() const { return session_.busy(); }  // also while what was asked for is still to come
  uint64_t steps() const { return state_->step; }
  std::string state_name() const { return std::string(name_of(state_->stage)); }
  double last_loss() const { return state_->losses.empty() ? 0 : state_->losses.back().mean; }
  double accuracy() const { return state_->tests.empty() ? 0 : state_->tests.back().accuracy; }
  std::vector<CsvRow> rows() const;  // the curves

 private:
  void start(TrainingRequest request, std::string name);

  TextureStore& textures_;
  TrainingSession session_;
  std::shared_ptr<const TrainingState> state_;
  std::string config_name_;
  std::vector<TexturePointer> samples_;
  std::vector<const void*> shown_pixels_;  // what the textures hold
};

}  // namespace vitrine::desktop
