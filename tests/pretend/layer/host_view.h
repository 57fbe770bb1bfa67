// What the device has written and the host may not see yet. Vulkan shows the host a write only after a
// barrier from the write to the host, in whichever submission; an invalidation alone doesn't.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace vitrine::pretend {

struct MemoryRange {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  uint64_t begin = 0, end = 0;
};

struct DeviceWrite {
  MemoryRange range;
  VkPipelineStageFlags2 stages = 0;
  VkAccessFlags2 access = 0;
};
struct Barrier {
  VkPipelineStageFlags2 from_stages = 0;
  VkAccessFlags2 from_access = 0;
  VkPipelineStageFlags2 to_stages = 0;
  VkAccessFlags2 to_access = 0;
  std::optional<MemoryRange> range;  // none: all memory

  bool operator==(const Barrier&) const;
};
using Event = std::variant<DeviceWrite, Barrier>;

class HostView {
 public:
  // In the order in which the queue runs them.
  void apply(const Event& event);
  void forget(VkDeviceMemory memory);
  // The parts of the range that the host may not see, as begin and end; in order, and none touches another.
  std::vector<std::pair<uint64_t, uint64_t>> hidden(const MemoryRange& range) const;

 private:
  // `access` is 0 once a barrier has made it available; then `stages` may lead on to the host.
  std::vector<DeviceWrite> writes_;
};

// Calls `visit` with begin and end of each part of [begin, end) that `holes` leave.
template <typename Visit>
void visit_without(uint64_t begin, uint64_t end, std::span<const std::pair<uint64_t, uint64_t>> holes,
                   const Visit& visit) {
  for (const auto& [from, to] : holes) {
    if (begin < from) visit(begin, from);
    begin = to;
  }
  if (begin < end) visit(begin, end);
}

}  // namespace vitrine::pretend
