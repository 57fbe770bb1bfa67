// Vulkan's result codes, as names and as errors.
#pragma once

#include <vulkan/vulkan_core.h>

#include <source_location>
#include <string>
#include <string_view>

namespace vitrine {

std::string name_of(VkResult result);  // "VK_ERROR_DEVICE_LOST"; unknown ones as "VkResult -123"

// Throws Error(failed) with the call's name when `result` is an error code (below zero).
void check(VkResult result, std::string_view call,
           std::source_location where = std::source_location::current());

}  // namespace vitrine
