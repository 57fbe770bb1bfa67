// Which device to use: a pure function of what the devices are.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vk/capabilities.h"

namespace vitrine {

// What Vitrine asks of any device besides Vulkan 1.3. So many storage buffers are enough for inference; a
// kernel that binds more (those of training do: Adam's update has 9) is refused when kernels are chosen.
inline constexpr uint32_t required_push_bytes = 128;
inline constexpr uint32_t required_storage_buffers = 8;

// Nothing when the device can be used at all, else what it lacks ("it has Vulkan 1.1, 1.3 is needed").
std::optional<std::string> why_unusable(const Capabilities& device);

struct DeviceChoice {
  std::optional<size_t> chosen;
  // A sentence for each device: why it was chosen, or why not.
  std::vector<std::string> reasons;
  std::string failure;  // when none was chosen: one sentence for the user

  // The chosen one's index, or Error(no_device) with `failure`.
  size_t index() const;
};

// `wanted` is an index, or else a part of a device's name in upper or lower case; empty means any.
// Discrete GPUs go before integrated ones, those before virtual ones, CPUs come last; among equals
// the first is taken.
DeviceChoice choose_device(std::span<const Capabilities> devices, std::string_view wanted);

// `option` (from --device) when it isn't empty, else the variable VITRINE_DEVICE, else empty.
std::string wanted_device(std::string_view option);

}  // namespace vitrine
