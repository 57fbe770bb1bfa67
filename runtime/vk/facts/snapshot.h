// From a Vulkan device to its Capabilities.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vk/capabilities.h"
#include "runtime/vk/instance_functions.h"

namespace vitrine {

// Asks the device everything that Capabilities holds; never calls or chains what its version and
// extensions don't have. Quirks are not applied here.
Capabilities take_snapshot(const InstanceFunctions& functions, VkPhysicalDevice device);

// The extensions that the device lists, and a search among them.
class DeviceExtensions {
 public:
  DeviceExtensions(const InstanceFunctions& functions, VkPhysicalDevice device);
  bool has(std::string_view name) const;

 private:
  std::vector<std::string> names_;
};

// The queue family to compute on: the first one that computes and tells the time, else the first one
// that computes.
std::optional<uint32_t> choose_queue_family(std::span<const VkQueueFamilyProperties> families);
// A queue by its family and its number among that family's.
struct QueuePlace {
  uint32_t family = 0, number = 0;
  bool operator==(const QueuePlace&) const = default;
};
// A queue that copies while another one of `family`, of which the first `taken` are somebody's, computes: of
// a family that does nothing but copy, for that is an engine of its own; else of another one that computes
// and doesn't draw; else one more of `family`. None where there is but the one queue.
std::optional<QueuePlace> choose_copy_queue(std::span<const VkQueueFamilyProperties> families,
                                            uint32_t family, uint32_t taken);
std::vector<VkQueueFamilyProperties> queue_families(const InstanceFunctions& functions,
                                                    VkPhysicalDevice device);

// Links Vulkan structures behind a head by their pNext.
class StructureChain {
 public:
  template <typename Head>
  explicit StructureChain(Head& head) : last_(reinterpret_cast<VkBaseOutStructure*>(&head)) {}
  template <typename Next>
  void add(Next& next) {
    last_->pNext = reinterpret_cast<VkBaseOutStructure*>(&next);
    last_ = last_->pNext;
  }

 private:
  VkBaseOutStructure* last_;
};

}  // namespace vitrine
