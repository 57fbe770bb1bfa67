#include "apps/cli/train_devices.h"

#include <algorithm>

#include "apps/cli/open_device.h"
#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/automatic_parts.h"
#include "train/batch_parts.h"
#include "train/checkpoint.h"

namespace vitrine::cli {

std::vector<PipelineStore*> TrainDevices::stores() const {
  std::vector<PipelineStore*> all;
  for (const auto& one : pipelines) all.push_back(one.get());
  return all;
}

TrainDevices open_train_devices(const TrainFlags& flags, const CommonOptions& common) {
  TrainDevices devices;
  if (flags.devices.empty()) {
    devices.opened.push_back(open_device(common));
  } else if (!common.device.empty()) {
    throw Error(ErrorCode::usage, "--devices: found " + in_quotes(flags.devices) + " beside --device " +
                                      in_quotes(common.device) + ", expected one of the two");
  } else {
    devices.opened = open_devices(flags.devices, "--devices");
  }
  for (const auto& device : devices.opened)
    devices.pipelines.push_back(std::make_unique<PipelineStore>(*device));
  return devices;
}

std::string decide_parts(TrainConfig& config, const TrainFlags& flags, const Dataset& data,
                         const TrainDevices& devices, const TrainingOptions& options) {
  std::string said;
  const std::filesystem::path checkpoint = checkpoint_in(flags.out);
  if (config.parts == 0 && flags.resume && path_exists(checkpoint, ErrorCode::failed)) {
    // A file may say anything.
    config.parts = std::min(parts_in_checkpoint(checkpoint), config.batch_size);
  } else if (config.parts == 0) {
    std::vector<Device*> opened;
    for (const auto& device : devices.opened) opened.push_back(device.get());
    const FittingParts fitting =
        fitting_parts(config, data, opened, options, options.devices.empty() ? 1 : parts_for_devices(config));
    config.parts = fitting.parts;
    said = fitting.said;
  }
  const uint64_t shared = parts_of(config).count() * config.accumulation;
  if (shared < options.devices.size()) {
    said += (said.empty() ? "" : "\n") + std::string("of ") + counted(options.devices.size(), "device") +
            " only " + std::to_string(shared) + (shared == 1 ? " has" : " have") +
            " anything to do: an update is made of " + counted(shared, "part") +
            " (--parts says of how many)";
  }
  return said;
}

}  // namespace vitrine::cli
