#include "apps/desktop/engine/slow_calls.h"

namespace vitrine::desktop {

SlowCalls::SlowCalls(bool on_a_thread) {
  if (on_a_thread) thread_ = std::thread([this] { run(); });
}

SlowCalls::~SlowCalls() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(lock_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SlowCalls::add(std::function<void()> call) {
  if (!thread_.joinable()) return call();
  {
    const std::scoped_lock lock(lock_);
    calls_.push_back(std::move(call));
  }
  changed_.notify_all();
}

void SlowCalls::run() {
  std::unique_lock lock(lock_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !calls_.empty(); });
    if (calls_.empty()) return;
    // What a call holds dies with it, and that may be as slow.
    std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    call();
    call = nullptr;
    lock.lock();
  }
}

}  // namespace vitrine::desktop
