#include "apps/cli/open_device.h"

#include <unistd.h>

#include <cstdio>

namespace vitrine::cli {

DeviceList list_devices(const CommonOptions& common) {
  DeviceList list;
  list.instance = std::make_shared<Instance>();
  list.devices = list.instance->devices();
  std::vector<Capabilities> capabilities;
  for (const PhysicalDevice& device : list.devices) capabilities.push_back(device.capabilities);
  list.choice = choose_device(capabilities, wanted_device(common.device));
  return list;
}

std::unique_ptr<Device> open_device(const CommonOptions& common) {
  const DeviceList list = list_devices(common);
  const size_t index = list.choice.index();
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "device %zu, %s\n", index, list.devices[index].capabilities.name.c_str());
  }
  return std::make_unique<Device>(list.instance, list.devices[index]);
}

}  // namespace vitrine::cli
