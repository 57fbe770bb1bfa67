// From --device to a device that can be used.
#pragma once

#include <memory>

#include "apps/cli/common_options.h"
#include "runtime/vk/open_device.h"

namespace vitrine::cli {

DeviceList list_devices(const CommonOptions& common);

// Opens the chosen device, and says which on stderr when that is a terminal. Error(no_device) when
// there is none to use.
std::unique_ptr<Device> open_device(const CommonOptions& common);

}  // namespace vitrine::cli
