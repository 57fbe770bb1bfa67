#include "runtime/vk/open_device.h"

#include <string>

namespace vitrine {

DeviceList list_devices(std::string_view wanted) {
  DeviceList list;
  list.instance = std::make_shared<Instance>();
  list.devices = list.instance->devices();
  std::vector<Capabilities> capabilities;
  for (const PhysicalDevice& device : list.devices) capabilities.push_back(device.capabilities);
  list.choice = choose_device(capabilities, wanted_device(std::string(wanted)));
  return list;
}

std::unique_ptr<Device> open_device(std::string_view wanted) {
  const DeviceList list = list_devices(wanted);
  return std::make_unique<Device>(list.instance, list.devices[list.choice.index()]);
}

}  // namespace vitrine
