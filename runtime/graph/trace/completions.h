// When the host can know that a timeline has come so far: a thread waits for each value in turn.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "runtime/vk/timeline.h"

namespace vitrine {

class Completions {
 public:
  explicit Completions(const Timeline& timeline);
  ~Completions();  // once all values are there
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  void add(uint64_t value);     // greater than those before
  double seen(uint64_t value);  // by host_seconds(); waits for it

 private:
  void run();

  const Timeline& timeline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<uint64_t> awaited_;
  std::map<uint64_t, double> seen_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace vitrine
