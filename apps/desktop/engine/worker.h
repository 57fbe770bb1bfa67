// What would make a window stutter, one job after the other on a thread of its own. What a job finds out goes
// back as a closure, which the UI's thread runs at the start of its next frame: state that is drawn is
// changed by one thread only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace vitrine::desktop {

// What a job throws to end early without having failed.
struct Cancelled {};

// How far a job is, and whether it is still wanted. Any thread may call any of it.
class Progress {
 public:
  void say(std::string text);   // what it does at the moment
  void set_done(double share);  // 0 to 1
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }
  // Throws Cancelled where the job is no longer wanted.
  void check() const;

  std::string text() const;
  double done() const { return done_; }

 private:
  std::atomic<bool> cancelled_ = false;
  std::atomic<double> done_ = 0;
  mutable std::mutex lock_;
  std::string text_;
};

class Worker {
 public:
  using Job = std::function<void(Progress&)>;
  using Task = std::function<void()>;

  // `wake` is called, from any thread, when there is something new for the UI: a task, an error, the end of a
  // job. It may do no more than what ends a wait for events.
  explicit Worker(Task wake = {});
  // Cancels what runs, waits for its end, and drops what is queued and what was meant for the UI.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Queues a job. `what` is shown while it runs. What it throws becomes a sentence for take_error(), unless
  // it is Cancelled or the job had been cancelled.
  void start(std::string what, Job job);
  // The running job, which is asked to stop, and those that are queued, which never start.
  void cancel();

  struct Status {
    bool busy = false;  // a job runs or waits
    std::string what, text;
    float done = 0;
    size_t queued = 0;
  };
  Status status() const;

  // From any thread, jobs included. Tasks run in the order in which they were posted; one that throws is an
  // error like a job's.
  void post_to_ui(Task task);
  // Of the UI's thread, once a frame. What the tasks themselves post waits for the next frame.
  void run_ui_tasks();
  // The next sentence of a job that failed.
  std::optional<std::string> take_error();

  // Nothing runs, waits to run, or waits for run_ui_tasks().
  bool idle() const;
  // Blocks until no job runs or is queued: for who has no frames to draw.
  void wait() const;

 private:
  struct Queued {
    std::string what;
    Job job;
  };
  void run();
  void add_error(std::string sentence);

  const Task wake_;
  mutable std::mutex lock_;  // of all that follows, up to the thread
  mutable std::condition_variable changed_;
  std::deque<Queued> queue_;
  std::string what_;
  std::shared_ptr<Progress> running_;  // null between jobs
  std::vector<Task> tasks_;
  std::deque<std::string> errors_;
  bool running_tasks_ = false;
  bool ends_ = false;
  std::thread thread_;
};

// The sentence for the exception that is being handled; nothing for Cancelled.
std::optional<std::string> sentence_of_current_exception();

}  // namespace vitrine::desktop
