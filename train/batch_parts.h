// Into which parts a configuration's batches are cut.
#pragma once

#include <cstdint>

#include "train/data/batch_parts.h"
#include "train/train_config.h"

namespace vitrine {

// One where a configuration doesn't say.
BatchParts parts_of(const TrainConfig& config);

// What each part is trained with: as many samples a step.
TrainConfig config_of_part(const TrainConfig& config);

// Into how many parts a batch is cut for several devices, where nobody says: so many that four devices have
// something to do in each update, and not fewer for one device, which has to come to the same bits.
uint64_t parts_for_devices(const TrainConfig& config);

}  // namespace vitrine
