#include "apps/cli/train_devices.h"

#include "apps/cli/open_device.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

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

}  // namespace vitrine::cli
