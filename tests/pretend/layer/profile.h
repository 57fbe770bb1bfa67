// What a make-believe device says of itself: a file of tests/pretend/profiles, read once for each instance.
#pragma once

#include <vulkan/vulkan_core.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::pretend {

struct Identity {
  std::string name;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  uint32_t vendor_id = 0, device_id = 0;
};
struct Limit {
  std::string name;  // Vulkan's
  std::array<uint64_t, 3> values{};
};
struct Heap {
  uint64_t bytes = 0, budget = 0;
  bool device_local = false;
};
struct MemoryType {
  uint32_t heap = 0;
  VkMemoryPropertyFlags flags = 0;
  bool for_buffers = true;

  // Host memory whose two copies have to be brought together by flushes and invalidations.
  bool keeps_two_copies() const {
    return (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0 &&
           (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) == 0;
  }
};
struct QueueFamily {
  VkQueueFlags flags = 0;
  uint32_t queues = 1, timestamp_bits = 0;
};

struct Profile {
  std::optional<Identity> identity;  // without one the driver's own is told
  std::vector<Limit> limits;         // those that the driver has of its own are told where it is the narrower
  std::vector<std::string> hidden;   // what the device can't do: names of features.h
  std::vector<Heap> heaps;
  std::vector<MemoryType> memory_types;
  std::vector<QueueFamily> queue_families;
  uint64_t fingerprint = 0;  // of the file's bytes
};

// Error(bad_file) that names the file and what is wrong with it; also for a name that nothing goes by.
Profile read_profile(const std::filesystem::path& path);

// FNV-1a, 64 bits, from where another one ended.
uint64_t fingerprint_of(std::string_view bytes, uint64_t begin = 0xcbf29ce484222325u);

}  // namespace vitrine::pretend
