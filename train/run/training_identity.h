// What tells one training from another, so that none goes on as what it isn't.
#pragma once

#include <cstdint>
#include <string>

#include "model/files/weights.h"
#include "train/data/dataset.h"
#include "train/train_config.h"

namespace vitrine {

// What has to be the same when a training goes on: the data, and of the configuration whatever the numbers
// depend on. How often it is saved and what is told of it may change, and so may the epochs, unless the
// learning rates of the updates that are made would have been others.
struct TrainingIdentity {
  TrainConfig config;
  std::string data;  // see fingerprint_of()
  uint64_t updates_an_epoch = 0;
  // Checksums of what is no part of a checkpoint: the weights that aren't trained, and a teacher's.
  uint64_t frozen = 0, teacher = 0;
};

// Says what a data set is, to tell it from others: its shape, how many samples, and a checksum of the labels.
std::string fingerprint_of(const Dataset& data);
// Of a training of this data, on these weights; without any it is begun with random ones.
TrainingIdentity identity_of(const TrainConfig& config, const Dataset& data, ConstantSource* weights);

}  // namespace vitrine
