// A queue that only copies, as a thread of its own: it copies with the host's hands what lies in the driver's
// memory, beside whatever the driver's one queue computes. And it is as late as a queue may be: it begins
// nothing before somebody waits for it, or for what comes behind it. So who forgets to wait finds old bytes.
#pragma once

#include <vulkan/vulkan_core.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "tests/pretend/layer/host_view.h"

namespace vitrine::pretend {

struct Device;

struct BufferCopy {
  VkBuffer from = VK_NULL_HANDLE, to = VK_NULL_HANDLE;
  VkBufferCopy region{};
};
struct BufferFill {
  VkBuffer to = VK_NULL_HANDLE;
  uint64_t offset = 0, bytes = 0;
  uint32_t word = 0;
};
struct TimeStamp {
  VkQueryPool pool = VK_NULL_HANDLE;
  uint32_t query = 0;
};
// What such a queue does, in order; events are for the host's view of it.
using CopyStep = std::variant<BufferCopy, BufferFill, TimeStamp, Event>;

// What is waited for, by anybody, on any queue or on the host.
class Wanted {
 public:
  void add(VkSemaphore semaphore, uint64_t value);
  void forget(VkSemaphore semaphore);

 private:
  friend class CopyEngine;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<VkSemaphore, uint64_t> values_;
};

class CopyEngine {
 public:
  struct Work {
    std::vector<std::pair<VkSemaphore, uint64_t>> waits, signals;
    std::vector<CopyStep> steps;
  };

  explicit CopyEngine(Device& device);
  ~CopyEngine();  // when all is done
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  void submit(Work work);
  void wait_idle();

 private:
  void run();
  bool is_wanted() const;
  void perform(const Work& work);

  Device& device_;
  std::deque<Work> works_;  // guarded as what is wanted is
  bool hurries_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace vitrine::pretend
