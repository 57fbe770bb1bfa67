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
  double loss = 0;                  // mean of the epoch's batches so far
  double images_per_second = 0;     // since this process began
  double seconds_left = 0;
};

struct TrainingEvents {
  std::function<void(const TrainingProgress&)> progress = {};  // after every batch that is known to be done
  std::function<void(const EpochReport&)> epoch = {};
};

struct TrainingOptions {
  std::filesystem::path out;  // folder: checkpoint, and the model at the end
  // Goes on from out's checkpoint; where there is none, begins.
  bool resume = false;
  bool recompute = false;
  // Saves after so many seconds, besides at every epoch's end.
  double checkpoint_seconds = 60;
  // Weights to begin with; drawn from the configuration's seed when left out.
  ConstantSource* weights = nullptr;
  PlanOptions plan = {};
};

class TrainingRun {
 public:
  // `train` has to outlive this. Nothing is written yet.
  TrainingRun(PipelineStore& pipelines, const TrainConfig& config, const Dataset& train,
              TrainingOptions options);

  const Trainer& trainer() const { return trainer_; }
  const TrainingPosition& position() const { return position_; }
  bool finished() const { return position_.epoch >= config_.epochs; }

  // Trains until the end or until `stop` is set; either way a checkpoint is saved. At the end the model is
  // written too. False when it was stopped.
  bool run(const TrainingEvents& events, const std::atomic<bool>& stop);
  TestResult test(const Dataset& data);

 private:
  uint64_t batches_an_epoch() const;
  void save();
  void take(const TrainingEvents& events);
  void report(const TrainingEvents& events, const BatchResult& result);

  TrainConfig config_;
  const Dataset& data_;
  TrainingOptions options_;
  TrainingIdentity identity_;
  Trainer trainer_;
  TrainingPosition position_;
  std::vector<BatchResult> results_;
  // Of this process.
  uint64_t seen_samples_ = 0, seen_batches_ = 0;
  double seen_seconds_ = 0;
};

// The number of updates of a whole training on so many samples.
uint64_t total_updates(const TrainConfig& config, uint64_t samples);

// What the configuration's model takes from a data set.
DatasetOptions dataset_options(const TrainConfig& config);

// The checkpoint of a training that writes to `out`.
std::filesystem::path checkpoint_in(const std::filesystem::path& out);

// Loss without label smoothing, and accuracy, of a trainer's model on all samples of a data set.
TestResult test_on(Trainer& trainer, const Dataset& data);

// Says what a data set is, to tell it from others: its shape, how many samples, and a checksum of the labels.
std::string fingerprint_of(const Dataset& data);

// Writes what open_model() reads: model.safetensors, config.json with the class names, and
// preprocessor_config.json with the normalisation.
void write_model(const std::filesystem::path& folder, Trainer& trainer,
                 const std::vector<std::string>& class_names);

}  // namespace vitrine
