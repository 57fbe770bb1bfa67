#include "runtime/graph/trace/completions.h"

#include "runtime/graph/trace/clocks.h"

namespace vitrine {

Completions::Completions(const Timeline& timeline) : timeline_(timeline), thread_([this] { run(); }) {}

Completions::~Completions() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Completions::add(uint64_t value) {
  const std::scoped_lock lock(mutex_);
  awaited_.push_back(value);
  changed_.notify_all();
}

double Completions::seen(uint64_t value) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return seen_.contains(value); });
  return seen_[value];
}

void Completions::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || !awaited_.empty(); });
    if (awaited_.empty()) return;
    const uint64_t value = awaited_.front();
    awaited_.pop_front();
    lock.unlock();
    timeline_.wait_without_check(value);  // a device that is lost says so to who submits
    const double now = host_seconds();
    lock.lock();
    seen_[value] = now;
    changed_.notify_all();
  }
}

}  // namespace vitrine
