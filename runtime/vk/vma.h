// Vulkan Memory Allocator as Vitrine uses it: functions are given at run time, its warnings are its own.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 1

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#endif
#include <vk_mem_alloc.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

namespace vitrine {

// On a card, a buffer of the device gets memory of its own from this size on: a block for several keeps what
// they don't fill, and stays when they have gone.
inline constexpr uint64_t alone_bytes = 16 << 20;

}  // namespace vitrine
