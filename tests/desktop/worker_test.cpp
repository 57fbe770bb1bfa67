// The background worker. Written to be run under ThreadSanitizer as well: every hand-over that the app makes
// between its threads is made here.
#include "apps/desktop/engine/worker.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

// Stays in a job until it is cancelled, and says when it has got there.
struct Stubborn {
  std::promise<void> there;
  void operator()(Progress& progress) {
    there.set_value();
    while (!progress.cancelled()) std::this_thread::yield();
  }
};

}  // namespace

TEST_CASE("jobs run one after the other, and what they post is run by who asks for it") {
  Worker worker;
  std::vector<int> seen;  // of this thread alone
  const std::thread::id ui = std::this_thread::get_id();
  std::atomic<int> at_once = 0, most = 0;
  for (int i = 0; i < 20; ++i) {
    worker.start("job", [&, i](Progress&) {
      most = std::max(most.load(), ++at_once);
      CHECK(std::this_thread::get_id() != ui);
      worker.post_to_ui([&, i] {
        CHECK(std::this_thread::get_id() == ui);
        seen.push_back(i);
      });
      --at_once;
    });
  }
  worker.wait();
  CHECK(most == 1);
  CHECK(seen.empty());
  CHECK_FALSE(worker.idle());  // the tasks wait
  worker.run_ui_tasks();
  REQUIRE(seen.size() == 20);
  for (int i = 0; i < 20; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
  CHECK(worker.idle());
}

TEST_CASE("the status says what runs, how far it is, and what waits") {
  Worker worker;
  std::promise<void> there, go_on;
  worker.start("open vit", [&](Progress& progress) {
    progress.say("weights");
    progress.set_done(0.25);
    there.set_value();
    go_on.get_future().wait();
    progress.set_done(7);
    CHECK(progress.done() == 1);
    progress.set_done(-1);
    CHECK(progress.done() == 0);
  });
  worker.start("look", [](Progress&) {});
  there.get_future().wait();
  const Worker::Status status = worker.status();
  CHECK(status.busy);
  CHECK(status.what == "open vit");
  CHECK(status.text == "weights");
  CHECK(status.done == 0.25f);
  CHECK(status.queued == 1);
  CHECK_FALSE(worker.idle());
  go_on.set_value();
  worker.wait();
  CHECK_FALSE(worker.status().busy);
  CHECK(worker.status().what.empty());
}

TEST_CASE("what fails becomes a sentence, and the next job runs") {
  Worker worker;
  bool ran = false;
  worker.start("a", [](Progress&) { throw Error(ErrorCode::bad_file, "cat.jpg: found nothing"); });
  worker.start("b", [](Progress&) { throw std::bad_alloc(); });
  worker.start("c", [](Progress&) { throw Cancelled{}; });
  worker.start("d", [](Progress&) { throw 7; });
  worker.start("e", [&](Progress&) { ran = true; });
  worker.wait();
  CHECK(ran);
  worker.post_to_ui([] { throw Error(ErrorCode::failed, "a task failed"); });
  worker.post_to_ui([&] { ran = false; });
  worker.run_ui_tasks();
  CHECK_FALSE(ran);  // the task behind the one that failed
  CHECK(worker.take_error() == "cat.jpg: found nothing");
  CHECK(worker.take_error() == "out of host memory");
  CHECK(worker.take_error() == "something failed without saying what");
  CHECK(worker.take_error() == "a task failed");
  CHECK_FALSE(worker.take_error());
}

TEST_CASE("cancel stops the running job and drops the queued ones, without a word") {
  Worker worker;
  auto stubborn = std::make_shared<Stubborn>();
  std::atomic<bool> ran = false;
  worker.start("stubborn", [stubborn](Progress& progress) {
    (*stubborn)(progress);
    throw Error(ErrorCode::failed, "stopped in the middle");
  });
  worker.start("never", [&](Progress&) { ran = true; });
  stubborn->there.get_future().wait();
  worker.cancel();
  worker.wait();
  CHECK_FALSE(ran);
  CHECK_FALSE(worker.take_error());
  // And it still works.
  worker.start("again", [&](Progress& progress) {
    progress.check();
    ran = true;
  });
  worker.wait();
  CHECK(ran);
}

TEST_CASE("check() leaves a cancelled job") {
  Worker worker;
  std::promise<void> there;
  std::atomic<bool> past = false;
  worker.start("job", [&](Progress& progress) {
    there.set_value();
    for (;;) {
      progress.check();
      std::this_thread::yield();
    }
    past = true;
  });
  there.get_future().wait();
  worker.cancel();
  worker.wait();
  CHECK_FALSE(past);
  CHECK_FALSE(worker.take_error());
}

TEST_CASE("a worker ends while a job runs, jobs wait and tasks wait") {
  const auto held = std::make_shared<int>(0);
  std::atomic<bool> ran = false;
  {
    Worker worker;
    auto stubborn = std::make_shared<Stubborn>();
    worker.start("stubborn", [stubborn, held, &worker](Progress& progress) {
      worker.post_to_ui([held] {});
      (*stubborn)(progress);
      worker.post_to_ui([held] {});
    });
    for (int i = 0; i < 5; ++i) worker.start("waits", [&ran, held](Progress&) { ran = true; });
    stubborn->there.get_future().wait();
  }
  CHECK_FALSE(ran);
  CHECK(held.use_count() == 1);  // nothing of it is left
}

TEST_CASE("a job's own state is gone when the job counts as ended") {
  Worker worker;
  const auto held = std::make_shared<int>(0);
  worker.start("job", [held](Progress&) {});
  worker.wait();
  CHECK(held.use_count() == 1);
}

TEST_CASE("tasks that tasks post wait for the next frame") {
  Worker worker;
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    worker.post_to_ui(again);
  };
  worker.post_to_ui(again);
  worker.run_ui_tasks();
  CHECK(runs == 1);
  worker.run_ui_tasks();
  CHECK(runs == 2);
}

TEST_CASE("who waits for events is woken by tasks, errors and the end of jobs") {
  std::atomic<int> wakes = 0;
  {
    Worker worker([&] { ++wakes; });
    worker.post_to_ui([] {});
    CHECK(wakes == 1);
    worker.start("fails", [](Progress&) { throw Error(ErrorCode::failed, "no"); });
    worker.wait();
  }
  CHECK(wakes == 3);
}

TEST_CASE("many threads start, cancel, post and ask at the same time") {
  std::atomic<size_t> ran = 0, tasks = 0, foreign = 0;
  {
    Worker worker;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 200; ++i) {
          worker.start("job " + std::to_string(i), [&](Progress& progress) {
            progress.say("text");
            progress.set_done(0.5);
            worker.post_to_ui([&] { ++tasks; });
            ++ran;
          });
          if (t == 0 && i % 50 == 0) worker.cancel();
          const Worker::Status status = worker.status();
          if (!status.text.empty() && status.text != "text") ++foreign;
        }
      });
    }
    for (int frame = 0; frame < 100; ++frame) {
      worker.run_ui_tasks();
      worker.take_error();
      worker.idle();
    }
    for (std::thread& thread : threads) thread.join();
    worker.wait();
    worker.run_ui_tasks();
    CHECK(worker.idle());
    CHECK(ran > 0);
    CHECK(tasks == ran);
    CHECK(foreign == 0);
  }
}

}  // namespace vitrine::desktop
