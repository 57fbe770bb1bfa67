#include "apps/cli/open_device.h"

#include <algorithm>
#include <cstdio>

#include "runtime/util/error.h"
#include "runtime/util/split.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"

namespace vitrine::cli {

DeviceList list_devices(const CommonOptions& common) { return vitrine::list_devices(common.device); }

std::unique_ptr<Device> open_device(const CommonOptions& common) {
  const DeviceList list = list_devices(common);
  const size_t index = list.choice.index();
  if (system::stderr_is_terminal()) {
    std::fprintf(stderr, "device %zu, %s\n", index, list.devices[index].capabilities.name.c_str());
  }
  return std::make_unique<Device>(list.instance, list.devices[index]);
}

std::vector<std::unique_ptr<Device>> open_devices(const std::string& wanted, const char* option) {
  constexpr size_t most = 64;
  const std::vector<std::string_view> parts = split(wanted, ',');
  const std::vector<std::string> names(parts.begin(), parts.end());
  if (names.size() > most || std::ranges::any_of(names, &std::string::empty)) {
    throw Error(ErrorCode::usage, std::string(option) + ": found " + in_quotes(wanted) +
                                      ", expected at most " + std::to_string(most) +
                                      " numbers or names of devices with commas between them");
  }
  // One instance for all, each chosen for itself.
  const DeviceList all = vitrine::list_devices(names.front());
  std::vector<Capabilities> capabilities;
  for (const PhysicalDevice& device : all.devices) capabilities.push_back(device.capabilities);
  std::vector<std::unique_ptr<Device>> devices;
  for (const std::string& name : names) {
    const size_t index = choose_device(capabilities, name).index();
    if (system::stderr_is_terminal()) {
      std::fprintf(stderr, "device %zu, %s\n", index, capabilities[index].name.c_str());
    }
    devices.push_back(std::make_unique<Device>(all.instance, all.devices[index]));
  }
  return devices;
}

}  // namespace vitrine::cli
