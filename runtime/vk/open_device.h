// From a user's wish to a device that can be used.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/vk/device.h"
#include "runtime/vk/device_choice.h"
#include "runtime/vk/instance.h"

namespace vitrine {

// All devices of an instance with the choice among them; nothing is opened yet.
struct DeviceList {
  std::shared_ptr<Instance> instance;
  std::vector<PhysicalDevice> devices;
  DeviceChoice choice;
};
DeviceList list_devices(std::string_view wanted = {});

// Opens the device that choose_device() takes: `wanted` is an index or a part of a name; empty: what
// VITRINE_DEVICE says, else the best there is. Error(no_device) when there is none to use.
std::unique_ptr<Device> open_device(std::string_view wanted = {});

}  // namespace vitrine
