// From --device to a device that can be used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/common_options.h"
#include "runtime/vk/open_device.h"

namespace vitrine::cli {

DeviceList list_devices(const CommonOptions& common);

// Opens the chosen device, and says which on stderr when that is a terminal. Error(no_device) when
// there is none to use.
std::unique_ptr<Device> open_device(const CommonOptions& common);
// Those of a list with commas, each as --device has it; one that comes twice is opened twice. `option` is
// what the list was given by.
std::vector<std::unique_ptr<Device>> open_devices(const std::string& wanted, const char* option);

}  // namespace vitrine::cli
