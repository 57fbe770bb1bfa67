// A training in the middle, as a file: parameters, moments and what is counted. It appears whole or not at
// all, so whoever is killed while saving goes on from the one before.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "train/logs/training_log.h"
#include "train/run/training_identity.h"
#include "train/run/validation.h"
#include "train/trainer.h"

namespace vitrine {

// What doesn't begin anew with each epoch.
struct TrainingHistory {
  uint64_t skipped_in_a_row = 0;  // updates that were left out, up to the newest one
  BestValidation best;
  LogSizes log;
  bool operator==(const TrainingHistory&) const = default;
};

// How far a training is, besides what its Trainer holds.
struct TrainingPosition {
  uint64_t epoch = 0;    // which is under way, from 0
  uint64_t batch = 0;    // how many of its batches are done; with all of them, its end is still to come
  double loss_sum = 0;   // of their mean losses, where these are finite
  uint64_t losses = 0;   // how many are
  uint64_t samples = 0;  // of these batches
  double seconds = 0;    // that they took
  uint64_t skipped = 0;  // updates of this epoch that were left out
  TrainingHistory history = {};
  bool operator==(const TrainingPosition&) const = default;
};

void save_checkpoint(const std::filesystem::path& path, Trainer& trainer, const TrainingPosition& position,
                     const TrainingIdentity& identity);
// Into how many parts the batches of the training were cut that a checkpoint is of: it has to go on so.
uint64_t parts_in_checkpoint(const std::filesystem::path& path);
// Puts the trainer into the state that was saved, by this version or one before it. Throws Error(bad_file)
// when the file is broken, of another model, or of a training with another configuration or other data,
// naming what differs.
TrainingPosition load_checkpoint(const std::filesystem::path& path, Trainer& trainer,
                                 const TrainingIdentity& identity);

}  // namespace vitrine
