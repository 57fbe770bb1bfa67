// On which devices `vitrine train` works.
#pragma once

#include <memory>
#include <vector>

#include "apps/cli/train_options.h"
#include "runtime/graph/pipeline_store.h"
#include "runtime/vk/device.h"

namespace vitrine::cli {

struct TrainDevices {
  std::vector<std::unique_ptr<Device>> opened;
  std::vector<std::unique_ptr<PipelineStore>> pipelines;  // one a device
  std::vector<PipelineStore*> stores() const;
};

// Those of --devices, else the one of --device.
TrainDevices open_train_devices(const TrainFlags& flags, const CommonOptions& common);

}  // namespace vitrine::cli
