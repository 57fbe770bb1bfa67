// A training in the middle, as a file: parameters, moments and what is counted. It appears whole or not at
// all, so whoever is killed while saving goes on from the one before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "train/trainer.h"

namespace vitrine {

// How far a training is, besides what its Trainer holds.
struct TrainingPosition {
  uint64_t epoch = 0;    // which is under way, from 0
  uint64_t batch = 0;    // how many of its batches are done
  double loss_sum = 0;   // of their mean losses
  uint64_t samples = 0;  // of these batches
  double seconds = 0;    // that they took
  bool operator==(const TrainingPosition&) const = default;
};

// What has to be the same when a training goes on: the configuration and the data.
struct TrainingIdentity {
  std::string config;  // to_json() of the TrainConfig
  std::string data;    // see fingerprint_of()
  bool operator==(const TrainingIdentity&) const = default;
};

void save_checkpoint(const std::filesystem::path& path, Trainer& trainer, const TrainingPosition& position,
                     const TrainingIdentity& identity);
// Puts the trainer into the state that was saved. Throws Error(bad_file) when the file is broken, of another
// model, or of a training with another configuration or other data, naming what differs.
TrainingPosition load_checkpoint(const std::filesystem::path& path, Trainer& trainer,
                                 const TrainingIdentity& identity);

}  // namespace vitrine
