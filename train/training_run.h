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

#include "train/checkpoint.h"
#include "train/data/dataset.h"
#include "train/train_config.h"
#include "train/trainer.h"

namespace vitrine {

struct EpochReport {
  uint64_t epoch = 0;  // from 1
  double loss = 0;     // the mean of its batches' mean losses
  double seconds = 0;
  double images_per_second = 0;
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
  // Saves after so many seconds, besides at every epoch's end.
  double checkpoint_seconds = 60;
  // Weights to begin with; drawn from the configuration's seed when left out.
  ConstantSource* weights = nullptr;
  PlanOptions plan = {};
  // See TrainerOptions.
  std::function<bool()> go_on = {};
  GoOn preparing = {};
};

class TrainingRun {
 public:
  // `train` has to outlive this. Nothing is written yet.
  TrainingRun(PipelineStore& pipelines, const TrainConfig& config, const Dataset& train,
              TrainingOptions options);

  const Trainer& trainer() const { return trainer_; }
  const TrainingPosition& position() const { return position_; }
  bool finished() const { return position_.epoch >= config_.epochs; }

  // Trains until the end or until `stop` is set; either way a checkpoint is saved, with the settings
  // (training.json) beside it. At the end the model is written too. False when it was stopped.
  bool run(const TrainingEvents& events, const std::atomic<bool>& stop);
  // Waits for what the device works on and tells run()'s events of it; for those who are called by `between`.
  void settle();
  // `take`: see Trainer::test(). Ends early, with what was done, when `stop` is set.
  TestResult test(const Dataset& data, const TakeResults& take = {}, const std::atomic<bool>* stop = nullptr);
  // Checkpoint, model and settings into a folder that appears whole or not at all, besides
  // what run() writes. It may hold what this or run() wrote before, and nothing else. For those who are
  // called by `between`, and when run() is over.
  void save_to(const std::filesystem::path& folder);

 private:
  uint64_t batches_an_epoch() const;
  void save();
  void write_settings(const std::filesystem::path& folder) const;
  void take();
  void report(const BatchResult& result);
  std::vector<std::string> class_names() const;

  TrainConfig config_;
  const Dataset& data_;
  TrainingOptions options_;
  TrainingIdentity identity_;
  Trainer trainer_;
  TrainingPosition position_;
  std::vector<BatchResult> results_;
  const TrainingEvents* events_ = nullptr;  // while run() runs
  bool settings_written_ = false;
  // Of this process.
  uint64_t seen_samples_ = 0, seen_batches_ = 0;
  double seen_seconds_ = 0;
};

// The number of updates of a whole training on so many samples.
uint64_t total_updates(const TrainConfig& config, uint64_t samples);

// What the configuration's model takes from a data set.
DatasetOptions dataset_options(const TrainConfig& config);

// The checkpoint of a training that writes to `out`, and the settings beside it.
std::filesystem::path checkpoint_in(const std::filesystem::path& out);
std::filesystem::path settings_in(const std::filesystem::path& out);

// Throws Error(usage) where settings that aren't this configuration's lie in `out` without a checkpoint: of
// that name may be a file that somebody has written.
void require_no_other_settings(const TrainConfig& config, const std::filesystem::path& out);

// Loss without label smoothing, and accuracy, of a trainer's model on all samples of a data set.
TestResult test_on(Trainer& trainer, const Dataset& data, const TakeResults& take = {},
                   const std::atomic<bool>* stop = nullptr);

// Says what a data set is, to tell it from others: its shape, how many samples, and a checksum of the labels.
std::string fingerprint_of(const Dataset& data);

// Writes what open_model() reads: model.safetensors, config.json with the class names, and
// preprocessor_config.json with the preprocessing that the training used.
void write_model(const std::filesystem::path& folder, Trainer& trainer,
                 const std::vector<std::string>& class_names);

}  // namespace vitrine
