// A profile's limits in the structures that Vulkan tells them in.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "tests/pretend/layer/profile.h"

namespace vitrine::pretend {

bool is_limit(std::string_view name);

// Narrows what the driver says: a profile can take away and never add.
void narrow(VkPhysicalDeviceLimits& limits, std::span<const Limit> profile);
// The same for limits that lie elsewhere in a chain of properties.
void narrow_chain(VkBaseOutStructure* chain, std::span<const Limit> profile);
// The limit that the profile has for it, else `otherwise`.
uint64_t limit_of(std::span<const Limit> profile, std::string_view name, uint64_t otherwise);

}  // namespace vitrine::pretend
