#include "apps/desktop/engine/slow_calls.h"

#include <catch2/catch_test_macros.hpp>
#include <future>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace vitrine::desktop;

namespace {

// Says which thread it died on.
struct Mortal {
  explicit Mortal(std::promise<std::thread::id>& says) : died(&says) {}
  Mortal(Mortal&& other) noexcept : died(std::exchange(other.died, nullptr)) {}
  Mortal(const Mortal&) = delete;
  ~Mortal() {
    if (died) died->set_value(std::this_thread::get_id());
  }
  std::promise<std::thread::id>* died;
};

}  // namespace

TEST_CASE("slow calls: who asks goes on while a call waits, and later calls wait for their turn") {
  SlowCalls calls(true);
  std::promise<void> lock;
  std::vector<int> order;
  std::future<int> first = calls.make([&, held = lock.get_future()] {
    held.wait();
    order.push_back(1);
    return 7;
  });
  std::future<void> second = calls.make([&] { order.push_back(2); });
  // The first call is held until here, so neither can have come.
  CHECK_FALSE(has_come(first));
  CHECK_FALSE(has_come(second));
  lock.set_value();
  CHECK(first.get() == 7);
  second.wait();
  CHECK(has_come(second));
  CHECK(order == std::vector{1, 2});
  CHECK_FALSE(has_come(first));  // its value has been taken
}

TEST_CASE("slow calls: what a call throws comes to who asked") {
  for (const bool on_a_thread : {true, false}) {
    CAPTURE(on_a_thread);
    SlowCalls calls(on_a_thread);
    std::future<int> failed = calls.make([]() -> int { throw std::runtime_error("no memory"); });
    failed.wait();
    CHECK(has_come(failed));
    CHECK_THROWS_AS(failed.get(), std::runtime_error);
    CHECK(calls.make([] { return 3; }).get() == 3);
  }
}

TEST_CASE("slow calls: without a thread a call is made before make() returns") {
  SlowCalls calls(false);
  bool called = false;
  const std::future<std::thread::id> made = calls.make([&] {
    called = true;
    return std::this_thread::get_id();
  });
  CHECK(called);
  CHECK(has_come(made));
}

TEST_CASE("slow calls: what is discarded dies on their thread") {
  SlowCalls calls(true);
  const std::thread::id thread = calls.make([] { return std::this_thread::get_id(); }).get();
  CHECK(thread != std::this_thread::get_id());
  std::promise<std::thread::id> died;
  calls.discard(Mortal(died));
  CHECK(died.get_future().get() == thread);

  SlowCalls at_once(false);
  std::promise<std::thread::id> died_here;
  at_once.discard(Mortal(died_here));
  CHECK(died_here.get_future().get() == std::this_thread::get_id());
}

TEST_CASE("slow calls: those that are left are made before the end") {
  std::promise<void> lock;
  int made = 0;
  std::thread opener;
  {
    SlowCalls calls(true);
    calls.make([held = lock.get_future()] { held.wait(); });
    for (int i = 0; i < 5; ++i) calls.make([&] { ++made; });
    opener = std::thread([&] { lock.set_value(); });
  }
  opener.join();
  CHECK(made == 5);
}
