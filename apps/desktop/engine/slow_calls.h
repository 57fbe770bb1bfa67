// Calls of the driver that may wait for the queue. A device that is the CPU holds a lock while it runs a
// command buffer, and making or destroying a view of an image takes that lock too; presenting there is a copy
// that the host makes once everything before it is done. On any device presenting may wait for the display
// (gpu/present_mode). Where that is so a thread makes these calls, one after the other; elsewhere they are
// made at once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace vitrine::desktop {

class SlowCalls {
 public:
  explicit SlowCalls(bool on_a_thread);
  // Makes those that are left.
  ~SlowCalls();
  SlowCalls(const SlowCalls&) = delete;
  SlowCalls& operator=(const SlowCalls&) = delete;

  // The future gets what `call` returns or throws. Who drops it does not wait for the call.
  template <typename Call>
  auto make(Call call) -> std::future<std::invoke_result_t<Call&>> {
    const auto task = std::make_shared<std::packaged_task<std::invoke_result_t<Call&>()>>(std::move(call));
    auto result = task->get_future();
    add([task] { (*task)(); });
    return result;
  }
  // Destroys it there.
  template <typename Thing>
  void discard(Thing thing) {
    add([held = std::make_shared<Thing>(std::move(thing))] {});
  }

 private:
  void add(std::function<void()> call);
  void run();

  std::mutex lock_;  // of all that follows, up to the thread
  std::condition_variable changed_;
  std::deque<std::function<void()>> calls_;
  bool ending_ = false;
  std::thread thread_;  // none where calls are made at once
};

template <typename Result>
bool has_come(const std::future<Result>& result) {
  return result.valid() && result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace vitrine::desktop
