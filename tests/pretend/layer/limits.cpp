#include "tests/pretend/layer/limits.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace vitrine::pretend {
namespace {

enum class Narrower : uint8_t { smaller, larger };

// Where one lies: `type` is the structure's, 0 for VkPhysicalDeviceLimits itself.
struct Place {
  std::string_view name;
  size_t offset, bytes;
  uint32_t count = 1;
  Narrower narrower = Narrower::smaller;
  VkStructureType type = VK_STRUCTURE_TYPE_MAX_ENUM;
};

#define LIMIT(member) \
#member, offsetof(VkPhysicalDeviceLimits, member), sizeof(VkPhysicalDeviceLimits::member)
#define LIMIT_IN(structure, member) #member, offsetof(structure, member), sizeof(structure::member)

constexpr Place places[] = {
    {LIMIT(maxStorageBufferRange)},
    {LIMIT(maxPushConstantsSize)},
    {LIMIT(maxMemoryAllocationCount)},
    {LIMIT(maxBoundDescriptorSets)},
    {LIMIT(maxPerStageDescriptorStorageBuffers)},
    {LIMIT(maxPerStageResources)},
    {LIMIT(maxDescriptorSetStorageBuffers)},
    {LIMIT(maxComputeSharedMemorySize)},
    {.name = "maxComputeWorkGroupCount",
     .offset = offsetof(VkPhysicalDeviceLimits, maxComputeWorkGroupCount),
     .bytes = sizeof(uint32_t),
     .count = 3},
    {LIMIT(maxComputeWorkGroupInvocations)},
    {.name = "maxComputeWorkGroupSize",
     .offset = offsetof(VkPhysicalDeviceLimits, maxComputeWorkGroupSize),
     .bytes = sizeof(uint32_t),
     .count = 3},
    {LIMIT(minStorageBufferOffsetAlignment), 1, Narrower::larger},
    {LIMIT(nonCoherentAtomSize), 1, Narrower::larger},
    {LIMIT_IN(VkPhysicalDeviceVulkan11Properties, maxMemoryAllocationSize), 1, Narrower::smaller,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES},
    {LIMIT_IN(VkPhysicalDeviceMaintenance3Properties, maxMemoryAllocationSize), 1, Narrower::smaller,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES},
    {LIMIT_IN(VkPhysicalDeviceVulkan13Properties, maxBufferSize), 1, Narrower::smaller,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES},
    {LIMIT_IN(VkPhysicalDeviceMaintenance4Properties, maxBufferSize), 1, Narrower::smaller,
     VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES},
};
#undef LIMIT
#undef LIMIT_IN

void narrow_at(void* structure, const Place& place, const Limit& limit) {
  auto* at = static_cast<std::byte*>(structure) + place.offset;
  for (uint32_t i = 0; i < place.count; ++i, at += place.bytes) {
    uint64_t value = 0;  // of 4 or 8 bytes, on machines that put the low ones first
    std::memcpy(&value, at, place.bytes);
    value = place.narrower == Narrower::smaller ? std::min(value, limit.values[i])
                                                : std::max(value, limit.values[i]);
    std::memcpy(at, &value, place.bytes);
  }
}

}  // namespace

bool is_limit(std::string_view name) {
  return std::ranges::any_of(places, [&](const Place& place) { return place.name == name; });
}

void narrow(VkPhysicalDeviceLimits& limits, std::span<const Limit> profile) {
  for (const Place& place : places) {
    if (place.type != VK_STRUCTURE_TYPE_MAX_ENUM) continue;
    for (const Limit& limit : profile) {
      if (limit.name == place.name) narrow_at(&limits, place, limit);
    }
  }
}

void narrow_chain(VkBaseOutStructure* chain, std::span<const Limit> profile) {
  for (; chain != nullptr; chain = chain->pNext) {
    for (const Place& place : places) {
      if (place.type != chain->sType) continue;
      for (const Limit& limit : profile) {
        if (limit.name == place.name) narrow_at(chain, place, limit);
      }
    }
  }
}

uint64_t limit_of(std::span<const Limit> profile, std::string_view name, uint64_t otherwise) {
  const auto found = std::ranges::find(profile, name, &Limit::name);
  return found == profile.end() ? otherwise : found->values[0];
}

}  // namespace vitrine::pretend
