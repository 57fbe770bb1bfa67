// From --device to a device that can be used.
#pragma once

#include <memory>
#include <vector>

#include "apps/cli/common_options.h"
#include "runtime/vk/device.h"
#include "runtime/vk/device_choice.h"
#include "runtime/vk/instance.h"

namespace vitrine::cli {

// All devices of an instance with the choice among them; nothing is opened yet.
struct DeviceList {
  std::shared_ptr<Instance> instance;
  std::vector<PhysicalDevice> devices;
  DeviceChoice choice;
};
DeviceList list_devices(const CommonOptions& common);

// Opens the chosen device, and says which on stderr when that is a terminal. Error(no_device) when
// there is none to use.
std::unique_ptr<Device> open_device(const CommonOptions& common);

}  // namespace vitrine::cli
