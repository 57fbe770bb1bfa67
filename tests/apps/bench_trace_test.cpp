// vitrine bench --trace as a user calls it, and its file read back.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Json = nlohmann::json;

constexpr uint64_t runs = 5;

test::CommandResult bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {VITRINE_PROGRAM, "bench", "--arch", "myvit_mnist", "--batch", "2"});
  return test::run_command(arguments);
}

double begin_of(const Json& event) { return event.at("ts"); }
double end_of(const Json& event) { return event.at("ts").get<double>() + event.at("dur").get<double>(); }

// By category and run.
using Spans = std::map<std::pair<std::string, uint64_t>, Json>;

}  // namespace

TEST_CASE("bench --trace writes the timeline of a loop with both sets in flight") {
  const Device& device = *test::test_device().device;  // skips without a device
  const Capabilities& caps = device.capabilities();
  const test::TemporaryFolder folder;
  const std::string file = folder.path() / "trace.json";
  const auto result = bench({"--dtype", "f32", "--runs", std::to_string(runs), "--json", "--trace", file});
  INFO(result.err);
  REQUIRE(result.status == 0);
  const Json line = Json::parse(result.out).at("trace");
  CHECK(line.at("file") == file);
  CHECK(line.at("runs") == runs);
  std::ifstream stream(file);
  const Json trace = Json::parse(stream);
  CHECK_THAT(trace.at("otherData").at("title").get<std::string>(), ContainsSubstring("myvit_mnist, batch 2"));
  CHECK(trace.at("otherData").at("device_clock") != "");

  std::map<int, std::string> lanes;
  Spans spans;
  std::vector<Json> dispatches;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") lanes[event.at("tid")] = event.at("args").at("name");
      continue;
    }
    REQUIRE(event.at("ph") == "X");
    CHECK(event.at("dur") >= 0.0);
    const std::string category = event.at("cat");
    if (category == "dispatch") {
      dispatches.push_back(event);
    } else if (category != "record") {
      CHECK(spans.emplace(std::pair{category, event.at("args").at("run")}, event).second);
    }
  }
  const bool uploads = !caps.unified_memory(), downloads = !caps.unified_cached_memory();
  CHECK(lanes.size() == (uploads || downloads ? 3 : 2));
  std::vector<std::string> categories{"fill", "submit", "run", "wait", "read"};
  if (uploads) categories.emplace_back("upload");
  if (downloads) categories.emplace_back("download");
  CHECK(spans.size() == runs * categories.size());

  // What the clocks can't tell apart, and the microsecond's digits.
  const double slack = trace.at("otherData").at("uncertainty_us").get<double>() + 0.01;
  for (uint64_t run = 0; run < runs; ++run) {
    INFO("run " << run);
    const auto span = [&](const char* category) { return spans.at({category, run}); };
    for (const std::string& category : categories) {
      CHECK(spans.contains({category, run}));
      CHECK(spans.at({category, run}).at("args").at("set") == (run % 2 == 0 ? "A" : "B"));
    }
    CHECK(end_of(span("fill")) <= begin_of(span("submit")));
    CHECK(begin_of(span("submit")) <= begin_of(span("run")) + slack);
    CHECK(end_of(span("run")) <= end_of(span("wait")) + slack);
    CHECK(end_of(span("wait")) <= begin_of(span("read")));
    if (uploads) {
      CHECK(begin_of(span("submit")) <= begin_of(span("upload")) + slack);
      CHECK(end_of(span("upload")) <= begin_of(span("run")) + 2 * slack);
    }
    if (downloads) {
      CHECK(end_of(span("run")) <= begin_of(span("download")) + 2 * slack);
      CHECK(end_of(span("download")) <= end_of(span("wait")) + slack);
    }
    // Both sets are in flight: a run was submitted before the one ahead of it was waited for.
    if (run + 1 < runs) CHECK(end_of(spans.at({"submit", run + 1})) <= begin_of(span("wait")));
    if (run + 1 < runs) CHECK(end_of(span("run")) <= begin_of(spans.at({"run", run + 1})) + slack);
  }

  // With a clock on the queue, each run is made of its dispatches.
  CHECK(dispatches.empty() == (caps.timestamp_valid_bits == 0));
  CHECK(dispatches.size() % runs == 0);
  for (const Json& dispatch : dispatches) {
    const Json& run = spans.at({"run", dispatch.at("args").at("run")});
    CHECK(begin_of(dispatch) >= begin_of(run) - 0.01);
    CHECK(end_of(dispatch) <= end_of(run) + 0.01);
    CHECK(dispatch.at("args").at("node") != "");
  }
  CHECK(std::ranges::any_of(dispatches, [](const Json& one) { return one.at("name") == "matmul"; }) ==
        !dispatches.empty());

  // The timeline begins with what is first, and dispatches follow each other without a part in common,
  // counted in nanoseconds: viewers would nest one in the other.
  std::vector<std::pair<int64_t, int64_t>> times;
  for (const Json& dispatch : dispatches)
    times.emplace_back(std::llround(begin_of(dispatch) * 1e3), std::llround(end_of(dispatch) * 1e3));
  std::ranges::sort(times);
  for (size_t i = 1; i < times.size(); ++i) CHECK(times[i - 1].second <= times[i].first);
  double earliest = begin_of(spans.at({"fill", 0}));
  for (const auto& [key, event] : spans) earliest = std::min(earliest, begin_of(event));
  CHECK(earliest == 0);

  double copies = 0;
  for (const auto& [key, event] : spans) {
    if (key.first == "upload" || key.first == "download") copies += event.at("dur").get<double>() / 1e3;
  }
  CHECK_THAT(line.at("copies_ms").get<double>(), WithinAbs(copies, 1e-6));
  CHECK(line.at("copies_beside_runs_ms") <= line.at("copies_ms"));
}

TEST_CASE("bench --trace is for one combination, and says where its file can't be") {
  test::test_device();
  const auto two = bench({"--dtype", "f32,f16", "--runs", "1", "--trace", "never.json"});
  CHECK(two.status == 2);
  CHECK_THAT(two.err, ContainsSubstring("--trace: found 1 batch sizes and 2 dtypes"));
  const auto nowhere = bench({"--runs", "1", "--trace", "/nowhere/trace.json"});
  CHECK(nowhere.status != 0);
  CHECK_THAT(nowhere.err, ContainsSubstring("/nowhere/trace.json"));
}

}  // namespace vitrine
