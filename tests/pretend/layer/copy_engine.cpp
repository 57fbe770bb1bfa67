#include "tests/pretend/layer/copy_engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tests/pretend/layer/state.h"

namespace vitrine::pretend {
namespace {

// Whoever asks without waiting has an answer in the end, too.
constexpr std::chrono::seconds longest_delay{1};

// Where bytes of a buffer lie in the driver's memory; null where the driver doesn't let the host see it.
std::byte* bytes_of(Device& device, VkBuffer buffer, uint64_t offset) {
  const std::scoped_lock lock(device.mutex);
  const BufferRecord& record = device.buffers.at(buffer);
  std::byte* memory = driver_view(device, record.memory);
  return memory == nullptr ? nullptr : memory + record.offset + offset;
}

void perform(Device& device, const BufferCopy& copy) {
  const std::byte* from = bytes_of(device, copy.from, copy.region.srcOffset);
  std::byte* to = bytes_of(device, copy.to, copy.region.dstOffset);
  if (from != nullptr && to != nullptr) std::memcpy(to, from, copy.region.size);
}

void perform(Device& device, const BufferFill& fill) {
  std::byte* to = bytes_of(device, fill.to, fill.offset);
  if (to == nullptr) return;
  for (uint64_t at = 0; at + sizeof fill.word <= fill.bytes; at += sizeof fill.word)
    std::memcpy(to + at, &fill.word, sizeof fill.word);
}

// The software driver's clock is this one, in nanoseconds.
void perform(Device& device, const TimeStamp& stamp) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const std::scoped_lock lock(device.mutex);
  device.stamps[{stamp.pool, stamp.query}] =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void perform(Device& device, const Event& event) {
  const std::scoped_lock lock(device.mutex);
  device.host_view.apply(event);
}

}  // namespace

void Wanted::add(VkSemaphore semaphore, uint64_t value) {
  const std::scoped_lock lock(mutex_);
  uint64_t& known = values_[semaphore];
  known = std::max(known, value);
  changed_.notify_all();
}

void Wanted::forget(VkSemaphore semaphore) {
  const std::scoped_lock lock(mutex_);
  values_.erase(semaphore);
}

CopyEngine::CopyEngine(Device& device) : device_(device), thread_([this] { run(); }) {}

CopyEngine::~CopyEngine() {
  {
    const std::scoped_lock lock(device_.wanted.mutex_);
    ends_ = true;
    device_.wanted.changed_.notify_all();
  }
  thread_.join();
}

void CopyEngine::submit(Work work) {
  for (const auto& [semaphore, value] : work.waits) device_.wanted.add(semaphore, value);
  const std::scoped_lock lock(device_.wanted.mutex_);
  works_.push_back(std::move(work));
  device_.wanted.changed_.notify_all();
}

void CopyEngine::wait_idle() {
  Wanted& wanted = device_.wanted;
  std::unique_lock lock(wanted.mutex_);
  hurries_ = true;
  wanted.changed_.notify_all();
  wanted.changed_.wait(lock, [&] { return works_.empty(); });
  hurries_ = false;
}

// One behind the other: who wants the last one wants all.
bool CopyEngine::is_wanted() const {
  const std::map<VkSemaphore, uint64_t>& values = device_.wanted.values_;
  return std::ranges::any_of(works_, [&](const Work& work) {
    return std::ranges::any_of(work.signals, [&](const auto& signal) {
      const auto found = values.find(signal.first);
      return found != values.end() && found->second >= signal.second;
    });
  });
}

void CopyEngine::run() {
  Wanted& wanted = device_.wanted;
  std::unique_lock lock(wanted.mutex_);
  for (;;) {
    wanted.changed_.wait(lock, [&] { return ends_ || !works_.empty(); });
    if (works_.empty()) return;
    wanted.changed_.wait_for(lock, longest_delay, [&] { return ends_ || hurries_ || is_wanted(); });
    const Work& work = works_.front();  // stays there while others are added
    lock.unlock();
    perform(work);
    lock.lock();
    works_.pop_front();
    wanted.changed_.notify_all();
  }
}

void CopyEngine::perform(const Work& work) {
  for (const auto& [semaphore, value] : work.waits) {
    VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore;
    info.pValues = &value;
    device_.next.vkWaitSemaphores(device_.handle, &info, UINT64_MAX);
  }
  for (const CopyStep& step : work.steps)
    std::visit([&](const auto& one) { pretend::perform(device_, one); }, step);
  for (const auto& [semaphore, value] : work.signals) {
    VkSemaphoreSignalInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
    info.semaphore = semaphore;
    info.value = value;
    device_.next.vkSignalSemaphore(device_.handle, &info);
  }
}

}  // namespace vitrine::pretend
