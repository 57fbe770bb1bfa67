#include "apps/cli/open_device.h"

#include <unistd.h>

#include <cstdio>

namespace vitrine::cli {

DeviceList list_devices(const CommonOptions& common) { return vitrine::list_devices(common.device); }

std::unique_ptr<Device> open_device(const CommonOptions& common) {
  const DeviceList list = list_devices(common);
  const size_t index = list.choice.index();
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "device %zu, %s\n", index, list.devices[index].capabilities.name.c_str());
  }
  return std::make_unique<Device>(list.instance, list.devices[index]);
}

}  // namespace vitrine::cli
