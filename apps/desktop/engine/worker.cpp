#include "apps/desktop/engine/worker.h"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

namespace vitrine::desktop {

void Progress::say(std::string text) {
  const std::lock_guard lock(lock_);
  text_ = std::move(text);
}

// Written so that NaN, which no comparison holds for, is 0.
void Progress::set_done(double share) { done_ = share > 0 ? std::min(share, 1.0) : 0.0; }

void Progress::check() const {
  if (cancelled_) throw Cancelled{};
}

std::string Progress::text() const {
  const std::lock_guard lock(lock_);
  return text_;
}

std::optional<std::string> sentence_of_current_exception() {
  try {
    throw;
  } catch (const Cancelled&) {
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return "out of host memory";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "something failed without saying what";
  }
}

Worker::Worker(Task wake) : wake_(std::move(wake)), thread_([this] { run(); }) {}

Worker::~Worker() {
  // Destroyed outside of the lock: what the closures hold may call this worker when it ends.
  std::deque<Queued> queued;
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(lock_);
    ends_ = true;
    queued.swap(queue_);
    if (running_) running_->cancel();
  }
  changed_.notify_all();
  thread_.join();
  const std::lock_guard lock(lock_);
  tasks.swap(tasks_);
}

void Worker::start(std::string what, Job job) {
  {
    const std::lock_guard lock(lock_);
    if (ends_) return;
    queue_.push_back({std::move(what), std::move(job)});
  }
  changed_.notify_all();
}

void Worker::cancel() {
  std::deque<Queued> dropped;
  {
    const std::lock_guard lock(lock_);
    dropped.swap(queue_);
    if (running_) running_->cancel();
  }
  changed_.notify_all();
}

Worker::Status Worker::status() const {
  const std::lock_guard lock(lock_);
  Status status;
  status.busy = running_ || !queue_.empty();
  status.queued = queue_.size();
  if (running_) {
    status.what = what_;
    status.text = running_->text();
    status.done = static_cast<float>(running_->done());
  } else if (!queue_.empty()) {
    status.what = queue_.front().what;
  }
  return status;
}

void Worker::post_to_ui(Task task) {
  {
    const std::lock_guard lock(lock_);
    if (ends_) return;
    tasks_.push_back(std::move(task));
  }
  if (wake_) wake_();
}

void Worker::run_ui_tasks() {
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(lock_);
    tasks.swap(tasks_);
    running_tasks_ = true;
  }
  for (Task& task : tasks) {
    try {
      task();
    } catch (...) {
      if (auto sentence = sentence_of_current_exception()) add_error(std::move(*sentence));
    }
    task = nullptr;  // what it holds ends before the next one runs
  }
  const std::lock_guard lock(lock_);
  running_tasks_ = false;
}

std::optional<std::string> Worker::take_error() {
  const std::lock_guard lock(lock_);
  if (errors_.empty()) return std::nullopt;
  std::string sentence = std::move(errors_.front());
  errors_.pop_front();
  return sentence;
}

bool Worker::idle() const {
  const std::lock_guard lock(lock_);
  return !running_ && queue_.empty() && tasks_.empty() && !running_tasks_;
}

void Worker::wait() const {
  std::unique_lock lock(lock_);
  changed_.wait(lock, [&] { return !running_ && queue_.empty(); });
}

void Worker::add_error(std::string sentence) {
  {
    const std::lock_guard lock(lock_);
    errors_.push_back(std::move(sentence));
  }
  if (wake_) wake_();
}

void Worker::run() {
  for (;;) {
    Queued next;
    std::shared_ptr<Progress> progress;
    {
      std::unique_lock lock(lock_);
      changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
      if (ends_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
      what_ = next.what;
      progress = running_ = std::make_shared<Progress>();
    }
    try {
      next.job(*progress);
    } catch (...) {
      // A job that was told to stop may stop by whatever fails first; nobody wants to hear of it.
      auto sentence = sentence_of_current_exception();
      if (sentence && !progress->cancelled()) add_error(std::move(*sentence));
    }
    next.job = nullptr;  // before the job counts as ended: what it holds may be a whole model
    {
      const std::lock_guard lock(lock_);
      running_.reset();
    }
    changed_.notify_all();
    if (wake_) wake_();
  }
}

}  // namespace vitrine::desktop
