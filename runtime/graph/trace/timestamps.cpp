#include "runtime/graph/trace/timestamps.h"

#include <volk.h>

#include <algorithm>
#include <cstring>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/graph/plan.h"
#include "runtime/vk/result.h"

namespace vitrine {

uint32_t timestamps_of(const Plan& plan) {
  size_t count = plan.slice_count;
  for (const Step& step : plan.steps) count += std::max<size_t>(1, step.parts.size());
  return to_u32(count);
}

Timestamps::Timestamps(Device& device, uint32_t count) : device_(device), count_(count) {
  VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = count;
  check(device_.vk().vkCreateQueryPool(device_.handle(), &info, nullptr, &pool_), "vkCreateQueryPool");
}

Timestamps::~Timestamps() { device_.vk().vkDestroyQueryPool(device_.handle(), pool_, nullptr); }

void Timestamps::reset(VkCommandBuffer commands) {
  device_.vk().vkCmdResetQueryPool(commands, pool_, 0, count_);
}

void Timestamps::reset() { device_.vk().vkResetQueryPool(device_.handle(), pool_, 0, count_); }

void Timestamps::write(VkCommandBuffer commands, uint32_t index) {
  device_.vk().vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool_, index);
}

void Timestamps::copy_to_host(VkCommandBuffer commands) {
  const uint64_t bytes = count_ * sizeof(uint64_t);
  if (!copy_) copy_ = Buffer(device_, BufferKind::readback, bytes, "timestamps");
  device_.vk().vkCmdCopyQueryPoolResults(commands, pool_, 0, count_, copy_.handle(), 0, sizeof(uint64_t),
                                         VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  record_barrier(device_, commands, VK_PIPELINE_STAGE_2_TRANSFER_BIT, VK_ACCESS_2_TRANSFER_WRITE_BIT,
                 VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
}

std::vector<uint64_t> Timestamps::ticks() const {
  std::vector<uint64_t> ticks(count_);
  if (copy_) {
    copy_.invalidate();
    std::memcpy(ticks.data(), copy_.mapped().data(), count_ * sizeof(uint64_t));
    return ticks;
  }
  check(device_.vk().vkGetQueryPoolResults(device_.handle(), pool_, 0, count_, count_ * sizeof(uint64_t),
                                           ticks.data(), sizeof(uint64_t),
                                           VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
        "vkGetQueryPoolResults");
  return ticks;
}

double seconds_between(uint64_t from, uint64_t to, uint32_t bits, double period_ns) {
  const uint64_t mask = bits >= 64 ? ~0ull : (1ull << bits) - 1;
  return static_cast<double>((to - from) & mask) * period_ns * 1e-9;
}

}  // namespace vitrine
