#include "tests/pretend/layer/host_view.h"

#include <algorithm>

namespace vitrine::pretend {
namespace {

// Names that stand for several stages or kinds of access become these.
VkPipelineStageFlags2 single_stages(VkPipelineStageFlags2 stages) {
  if ((stages & VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT) != 0) {
    return ~VkPipelineStageFlags2{VK_PIPELINE_STAGE_2_HOST_BIT} | (stages & VK_PIPELINE_STAGE_2_HOST_BIT);
  }
  if ((stages & VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT) != 0) {
    stages |= VK_PIPELINE_STAGE_2_COPY_BIT | VK_PIPELINE_STAGE_2_CLEAR_BIT | VK_PIPELINE_STAGE_2_BLIT_BIT |
              VK_PIPELINE_STAGE_2_RESOLVE_BIT;
  }
  return stages;
}

VkAccessFlags2 single_access(VkAccessFlags2 access) {
  if ((access & VK_ACCESS_2_MEMORY_WRITE_BIT) != 0) {
    access |= VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT;
  }
  if ((access & VK_ACCESS_2_MEMORY_READ_BIT) != 0) access |= VK_ACCESS_2_HOST_READ_BIT;
  if ((access & VK_ACCESS_2_SHADER_WRITE_BIT) != 0) access |= VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
  return access;
}

bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.memory == b.memory && a.begin < b.end && b.begin < a.end;
}
bool holds(const MemoryRange& outer, const MemoryRange& inner) {
  return outer.memory == inner.memory && outer.begin <= inner.begin && inner.end <= outer.end;
}

}  // namespace

bool Barrier::operator==(const Barrier& other) const {
  const auto same_range = [&] {
    if (range.has_value() != other.range.has_value()) return false;
    return !range || (holds(*range, *other.range) && holds(*other.range, *range));
  };
  return from_stages == other.from_stages && from_access == other.from_access &&
         to_stages == other.to_stages && to_access == other.to_access && same_range();
}

void HostView::apply(const Event& event) {
  if (const auto* write = std::get_if<DeviceWrite>(&event)) {
    std::erase_if(writes_, [&](const DeviceWrite& old) { return holds(write->range, old.range); });
    writes_.push_back(*write);
    return;
  }
  const Barrier& barrier = std::get<Barrier>(event);
  const VkPipelineStageFlags2 from = single_stages(barrier.from_stages);
  const VkPipelineStageFlags2 to = single_stages(barrier.to_stages);
  const bool to_host = (to & VK_PIPELINE_STAGE_2_HOST_BIT) != 0 &&
                       (single_access(barrier.to_access) & VK_ACCESS_2_HOST_READ_BIT) != 0;
  std::erase_if(writes_, [&](DeviceWrite& write) {
    if (barrier.range && !holds(*barrier.range, write.range)) return false;
    const bool waits = (from & write.stages) != 0;
    const bool takes_along = write.access == 0 || (single_access(barrier.from_access) & write.access) != 0;
    if (!waits || !takes_along) return false;
    if (to_host) return true;
    write.stages |= to;
    write.access = 0;
    return false;
  });
}

void HostView::forget(VkDeviceMemory memory) {
  std::erase_if(writes_, [&](const DeviceWrite& write) { return write.range.memory == memory; });
}

std::vector<std::pair<uint64_t, uint64_t>> HostView::hidden(const MemoryRange& range) const {
  std::vector<std::pair<uint64_t, uint64_t>> parts;
  for (const DeviceWrite& write : writes_) {
    if (!overlap(write.range, range)) continue;
    parts.emplace_back(std::max(write.range.begin, range.begin), std::min(write.range.end, range.end));
  }
  std::ranges::sort(parts);
  std::vector<std::pair<uint64_t, uint64_t>> joined;
  for (const auto& part : parts) {
    if (!joined.empty() && part.first <= joined.back().second) {
      joined.back().second = std::max(joined.back().second, part.second);
    } else {
      joined.push_back(part);
    }
  }
  return joined;
}

}  // namespace vitrine::pretend
