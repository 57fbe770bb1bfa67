// A whole training: a data set, a model that learns it, checkpoints on the way, and the model at the end.
// What happens is told to whoever called it; nothing is printed here.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/data/batch_loader.h"
#include "train/data/dataset.h"
#include "train/logs/loss_watch.h"
#include "train/run/checkpoint.h"
#include "train/run/feature_cache.h"
#include "train/run/run_folder.h"
#include "train/run/run_settings.h"
#include "train/train_config.h"
#include "train/trainer.h"
#include "train/trainer_team.h"

namespace vitrine {

struct EpochReport {
  uint64_t epoch = 0;  // from 1
  double loss = 0;     // the mean of its batches' mean losses, where these are finite; NaN where none is
  double seconds = 0;
  double images_per_second = 0;
  // Of these seconds, as far as they are this process's: those in which nothing could be handed to the
  // device, for pictures were still being read and decoded.
  double waited_seconds = 0;
  uint64_t skipped_steps = 0;  // updates that were left out, because a gradient was not finite
  std::optional<ValidationResult> validation = {};  // where it was validated at the epoch's end
};

struct TrainingProgress {
  uint64_t epoch = 0, epochs = 0;   // the one under way, from 1
  uint64_t batches = 0, total = 0;  // of the whole training
  double batch_loss = 0;            // of the batch that this is about
  double loss = 0;                  // mean of the epoch's batches so far
  double images_per_second = 0;     // since this process began
  double seconds_left = 0;
};

struct TrainingEvents {
  std::function<void(const TrainingProgress&)> progress = {};  // after every batch that is known to be done
  std::function<void(const EpochReport&)> epoch = {};
  std::function<void(const ValidationResult&)> validation = {};  // of those in the middle of an epoch
  // A sentence, each once: that f16 is why an update is not finite, and where; that the loss rises under f16.
  std::function<void(const std::string&)> notice = {};
  // Before the first batch of a training on features: of how many samples they are computed.
  std::function<void(uint64_t done, uint64_t total)> features = {};
  // After every update has been handed to the device, and before the next batch is: whoever trains may wait
  // here, test, save, or set `stop`. It changes nothing of what the training comes to, and its time is not
  // counted.
  std::function<void()> between = {};
};

struct TrainingOptions {
  // Folder: checkpoint and settings, and the model at the end; empty: nothing is written.
  std::filesystem::path out;
  // Goes on from out's checkpoint; where there is none, begins.
  bool resume = false;
  // Goes on from the checkpoint in this folder, which has to be there; nothing else is done with it.
  std::filesystem::path from;
  bool recompute = false;
  // What it is validated on, as often as the configuration says; has to outlive the run. None: it isn't.
  const Dataset* validation = nullptr;
  // Saves after so many seconds, besides at every epoch's end and every validation.
  double checkpoint_seconds = 60;
  // Weights to begin with, and those that aren't trained; drawn from the configuration's seed when left out.
  // Has to outlive the training.
  ConstantSource* weights = nullptr;
  // What an adapter that is written calls the model that `weights` are of; a training with LoRA that writes
  // anything needs both.
  std::string base = {};
  PlanOptions plan = {};
  // Those that share the parts of each batch, the first of which is that of the constructor's pipelines; one
  // alone comes to the same bits. Empty: it is not shared, and never waits for the host.
  std::vector<PipelineStore*> devices = {};
  // See TrainerOptions; the bits are the same.
  std::optional<bool> pictures_on_host = {};
  std::function<bool()> go_on = {};
  GoOn preparing = {};
};

class TrainingRun {
 public:
  // `train` has to outlive this. Nothing is written yet.
  TrainingRun(PipelineStore& pipelines, const TrainConfig& config, const Dataset& train,
              TrainingOptions options);

  const Trainer& trainer() const { return trainer_; }
  const TrainConfig& config() const { return config_; }
  const TrainingPosition& position() const { return position_; }
  // Whether what the heads see is computed once, and every epoch begins with it: trains_on_fixed_features(),
  // as far as the host's memory is taken for it.
  bool on_features() const { return on_features_; }
  bool finished() const { return position_.epoch >= config_.epochs || ended_early(); }
  // Whether it has ended because it got no better.
  bool ended_early() const;

  // Trains until the end or until `stop` is set; either way a checkpoint is saved, with the settings
  // (training.json) beside it. At the end the model is written too; where it is validated, that is done at
  // each validation (run_folder.h). False when it was stopped. Error(failed) after the configuration's
  // max_skipped_steps in a row whose gradients were not finite; it is saved then, too.
  bool run(const TrainingEvents& events, const std::atomic<bool>& stop);
  // Waits for what the device works on and tells run()'s events of it; for those who are called by `between`.
  void settle();
  // `take`: see Trainer::test(). Ends early, with what was done, when `stop` is set.
  TestResult test(const Dataset& data, const TakeResults& take = {}, const std::atomic<bool>* stop = nullptr);
  // The same of the best model that run() has left in its folder; of the last where it doesn't validate. The
  // parameters are the last one's again afterwards.
  TestResult test_best(const Dataset& data);
  // Checkpoint, model and settings into a folder that appears whole or not at all, besides what run() writes.
  // It may hold what this, or run() without validations and kept checkpoints, wrote before, and nothing else.
  // For those who are called by `between`, and when run() is over.
  void save_to(const std::filesystem::path& folder);

 private:
  uint64_t batches_an_epoch() const;
  bool validates() const { return options_.validation && config_.validate_every > 0; }
  bool validation_due(bool epoch_ends) const;
  std::optional<ValidationResult> validate(const std::atomic<bool>& stop);
  void write_models(bool best);
  bool compute_features(const TrainingEvents& events, const std::atomic<bool>& stop);
  void save();
  void keep();
  bool finish();
  void write_settings(const std::filesystem::path& folder) const;
  void take();
  void report(const BatchResult& result);
  void log_result(const BatchResult& result);
  void watch_loss(double loss);
  double epoch_loss() const;
  void end_where_lost();
  void look_for_f16(const LoaderOptions& loading);
  std::vector<std::string> class_names() const;

  TrainConfig config_;
  const Dataset& data_;
  TrainingOptions options_;
  TrainingIdentity identity_;
  bool on_features_;
  BatchParts parts_;
  TrainerTeam team_;
  Trainer& trainer_;                      // its first
  std::optional<FeatureCache> features_;  // from the first run() on
  TrainingPosition position_;
  std::vector<BatchResult> results_;
  const TrainingEvents* events_ = nullptr;  // while run() runs
  bool settings_written_ = false;
  std::unique_ptr<TrainingLog> log_;  // from run() on, where there is a folder
  double group_loss_sum_ = 0;         // of the batches behind the last update
  uint64_t group_samples_ = 0, reported_skipped_ = 0;
  uint64_t reported_updates_ = 0;  // of the whole training: those of which report() was told
  // The update with which there were too many in a row that were left out, and how many.
  std::optional<uint64_t> lost_at_{};
  uint64_t lost_in_a_row_ = 0;
  // In an f16 training: the batch of a group whose loss was no number, that of the first update that was left
  // out for it, and what came of looking at it.
  std::optional<uint64_t> bad_batch_{}, look_at_{};
  bool looked_ = false;
  std::string f16_sentence_;
  std::optional<LossWatch> loss_watch_;  // where products are f16, from where this process began
  // Of this process.
  uint64_t seen_samples_ = 0, seen_batches_ = 0;
  double seen_seconds_ = 0;
};

// The number of updates of a whole training on so many samples.
uint64_t total_updates(const TrainConfig& config, uint64_t samples);

// What the steps of a training on a data set are given of pictures.
StepImages images_of(const Dataset& data, const TrainConfig& config);

// Whether what the heads see is to be computed once.
bool trains_on_features(const TrainConfig& config, const Dataset& data);

// What the configuration's model takes from a data set.
DatasetOptions dataset_options(const TrainConfig& config);

// Whether pictures come ready: where that isn't said, if each device that is given some is the host itself.
bool pictures_on_host(const TrainingOptions& options, const Device& device);

// How data are read that chance does nothing to; for a device with this much room for a picture, or for ready
// ones.
LoaderOptions plain_loading(const TrainConfig& config, StepImages images, const PictureCapacity& largest,
                            bool on_host);
// How a training's steps read theirs, from the first epoch to the last.
LoaderOptions step_loading(const TrainConfig& config, StepImages images, const PictureCapacity& largest,
                           bool on_host);

// Loss without label smoothing, and accuracy, of a trainer's model on all samples of a data set.
TestResult test_on(Trainer& trainer, const Dataset& data, const TakeResults& take = {},
                   const std::atomic<bool>* stop = nullptr);

// Writes what open_model() reads: model.safetensors, config.json with the class names, and
// preprocessor_config.json with the preprocessing that the training used. With LoRA an adapter takes the
// place of the first, beside a model that is called `base`.
void write_model(const std::filesystem::path& folder, Trainer& trainer,
                 const std::vector<std::string>& class_names, const std::string& base = {});

}  // namespace vitrine
