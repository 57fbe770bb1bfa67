// On which devices `vitrine train` works, and into which parts it cuts batches for them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/train_options.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/vk/device.h"
#include "train/training_run.h"

namespace vitrine::cli {

struct TrainDevices {
  std::vector<std::unique_ptr<Device>> opened;
  std::vector<std::unique_ptr<PipelineStore>> pipelines;  // one a device
  std::vector<PipelineStore*> stores() const;
};

// Those of --devices, else the one of --device.
TrainDevices open_train_devices(const TrainFlags& flags, const CommonOptions& common);

// Says of a configuration that doesn't into how many parts its batches are cut: as many as the checkpoint
// that it goes on from, else as many as the devices ask for. Returns what is to be said of that; mostly
// nothing.
std::string decide_parts(TrainConfig& config, const TrainFlags& flags, const Dataset& data,
                         const TrainDevices& devices, const TrainingOptions& options);

}  // namespace vitrine::cli
