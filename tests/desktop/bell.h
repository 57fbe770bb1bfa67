// Wakes a test that waits for another thread, as the window's loop would be.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace vitrine::test {

class Bell {
 public:
  void ring() {
    {
      const std::lock_guard lock(lock_);
      ++rung_;
    }
    changed_.notify_all();
  }
  // Looks after every ring whether it is `done`.
  template <typename Done>
  void wait(const Done& done) {
    uint64_t seen = rung();
    while (!done()) {
      std::unique_lock lock(lock_);
      changed_.wait(lock, [&] { return rung_ != seen; });
      seen = rung_;
    }
  }
  uint64_t rung() {
    const std::lock_guard lock(lock_);
    return rung_;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  uint64_t rung_ = 0;
};

}  // namespace vitrine::test
