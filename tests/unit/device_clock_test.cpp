// A device's clock on the host's, and what a timeline adds up to.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include "runtime/graph/trace/timestamps.h"
#include "runtime/graph/trace/traced_loop.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::WithinAbs;

}  // namespace

TEST_CASE("timestamps are told apart across the end of their counter") {
  CHECK_THAT(seconds_between(100, 350, 64, 2.0), WithinAbs(500e-9, 1e-15));
  CHECK_THAT(seconds_between((1ull << 36) - 10, 15, 36, 1.0), WithinAbs(25e-9, 1e-15));
  CHECK_THAT(seconds_between(~0ull, 4, 64, 1.0), WithinAbs(5e-9, 1e-15));
}

TEST_CASE("two readings of both clocks place the moments between them, and by the host's rate") {
  // 52 ns a tick, and 40 millionths slower than the host's.
  DeviceClock clock(36, 52.0);
  const uint64_t first = (1ull << 36) - 500;
  const double rate = 1.00004;
  const auto host = [&](uint64_t ticks) { return 1000 + rate * static_cast<double>(ticks) * 52e-9; };
  clock.match({.host = host(0), .ticks = first, .deviation = 1e-6},
              {.host = host(40'000'000), .ticks = 40'000'000 - 500, .deviation = 3e-6});
  CHECK_THAT(clock.at(first + 200), WithinAbs(host(200), 1e-9));
  CHECK_THAT(clock.at(20'000'000 - 500), WithinAbs(host(20'000'000), 1e-9));
  CHECK(clock.uncertainty() == 3e-6);
  // A clock that jumped is no rate.
  clock.match({.host = 10, .ticks = 1000}, {.host = 20, .ticks = 1001});
  CHECK_THAT(clock.at(1001), WithinAbs(10 + 52e-9, 1e-12));
}

TEST_CASE("without a reading, a clock lies where submissions and their ends allow") {
  // In truth 7 s ahead of the device's.
  const auto ticks = [](double host) { return static_cast<uint64_t>((host - 7) * 1e9 + 0.5); };
  const std::array<Bracket, 3> brackets{{{10.000, 10.030, ticks(10.004), ticks(10.021)},
                                         {10.020, 10.042, ticks(10.021), ticks(10.040)},
                                         {10.030, 10.065, ticks(10.040), ticks(10.060)}}};
  DeviceClock clock(64, 1.0);
  clock.match(brackets);
  // At most 1 ms too early, by the second's beginning; at most 2 ms too late, by its end.
  CHECK_THAT(clock.at(ticks(10.030)), WithinAbs(10.0305, 1e-7));
  CHECK_THAT(clock.uncertainty(), WithinAbs(0.0015, 1e-7));
  for (const Bracket& one : brackets) {
    CHECK(clock.at(one.begin) >= one.submitted);
    CHECK(clock.at(one.end) <= one.seen);
  }
}

TEST_CASE("of copies, what lies beside a run counts as that") {
  const auto span = [](TraceLane lane, const char* name, const char* op, double begin, double end) {
    return TraceSpan{.lane = lane, .name = name, .operator_name = op, .begin = begin, .end = end};
  };
  LoopTrace trace;
  trace.spans = {span(TraceLane::host, "fill", "", 0, 100),
                 span(TraceLane::copies, "upload", "", 0, 2),      // before all runs
                 span(TraceLane::compute, "run", "", 2, 10),       //
                 span(TraceLane::compute, "fc1", "matmul", 2, 9),  // is in its run
                 span(TraceLane::copies, "upload", "", 3, 5),      // beside one
                 span(TraceLane::compute, "run", "", 11, 20),
                 span(TraceLane::copies, "download", "", 9, 12)};  // beside two, with a second between them
  const CopyTimes times = copy_times(trace);
  CHECK_THAT(times.seconds, WithinAbs(7, 1e-12));
  CHECK_THAT(times.beside_runs, WithinAbs(4, 1e-12));
}

}  // namespace vitrine::test
