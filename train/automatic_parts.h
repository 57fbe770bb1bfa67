// Into how many parts a training's batches have to be cut so that a step fits the device.
#pragma once

#include <span>
#include <string>

#include "train/data/dataset.h"
#include "train/run/training_run.h"
#include "train/train_config.h"

namespace vitrine {

struct FittingParts {
  uint64_t parts = 1;
  std::string said;  // why it is more than was wanted, in a sentence; else empty
};

// At least `wanted` parts of each batch, and twice as many until what a step and a test take, by their plans,
// is free on each of the devices, with an eighth to spare, and no kernel refuses it. Where nothing fits, it
// is `wanted`: what is wrong says whoever tries. `options` are those of the training.
FittingParts fitting_parts(const TrainConfig& config, const Dataset& data, std::span<Device* const> devices,
                           const TrainingOptions& options, uint64_t wanted);

}  // namespace vitrine
