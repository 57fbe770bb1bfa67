// A device's capabilities in words, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/vk/capabilities.h"

namespace vitrine {

struct DeviceFact {
  std::string name, value;  // "subgroups", "8, workgroups up to 1024, shared memory 32 KiB"
};
// What `vitrine devices` prints of it; several facts may have the same name.
std::vector<DeviceFact> device_facts(const Capabilities& device);
// The driver and what it says of itself, which is nothing in some (SwiftShader).
std::string driver_text(const Capabilities& device);
// The device and its driver in one line. A software driver's device has the driver's name in its own, which
// isn't said twice.
std::string device_and_driver(const Capabilities& device);
// What stands above results of this device: it and its driver in one line, and a line for each advice.
std::string device_heading(const Capabilities& device);

std::string version_text(uint32_t vulkan_version);
std::string shape_text(const CooperativeShape& shape);
// The smallest of which the others are multiples.
std::string shape_text(const FlexibleShape& shape);
uint64_t device_local_bytes(const Capabilities& device);

}  // namespace vitrine
