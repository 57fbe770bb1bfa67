// Curves of trainings that others make: what is read of their logs, also while these grow and are cut.
#include "apps/desktop/engine/run_log.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "apps/desktop/engine/run_watch.h"
#include "runtime/util/error.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"
#include "train/logs/training_log.h"

namespace vitrine::desktop {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

const std::string heading =
    "step,epoch,loss,learning_rate,gradient_norm,skipped_steps,images_per_second,val_loss,val_accuracy,val_"
    "top5,"
    "best\n";

std::string update(uint64_t step, double loss, uint64_t skipped = 0, const char* speed = "250.5") {
  return std::to_string(step) + "," + std::to_string(1 + step / 10) + "," + std::to_string(loss) +
         ",0.001,2.5," + std::to_string(skipped) + "," + speed + ",,,,\n";
}
std::string validation(uint64_t step, double loss, double accuracy, bool best) {
  return std::to_string(step) + ",1,,,,,," + std::to_string(loss) + "," + std::to_string(accuracy) + ",0.9," +
         (best ? "1" : "0") + "\n";
}

void append(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

void read_all(RunFollower& follower) {
  do {
    follower.read_more();
  } while (!follower.at_end());
}

}  // namespace

TEST_CASE("a log that was cut into pieces is the log") {
  std::string text = heading;
  for (uint64_t i = 1; i <= 40; ++i) {
    text += i == 7 ? "7,1,nan,0.001,inf,1,250,,,,\n" : update(i, 2 - 0.01 * static_cast<double>(i), i >= 7);
    if (i % 10 == 0) text += validation(i, 1.0, i == 20 ? 0.75 : 0.5, i <= 20);
  }
  RunLog whole("log.csv");
  whole.add(text);
  const RunCurves curves = whole.curves();
  CHECK(curves.step == 40);
  CHECK(curves.epoch == 1);
  REQUIRE(curves.loss.size() == 40);
  CHECK(std::isnan(curves.loss[6].mean));
  CHECK(curves.loss[39].mean == 1.6);
  CHECK(curves.newest_loss == 1.6);
  CHECK(std::isinf(curves.gradient_norm[6].mean));
  CHECK(curves.learning_rate[3].mean == 0.001);
  CHECK(curves.images_per_second[3].mean == 250.5);
  CHECK(curves.skipped == 1);
  CHECK(curves.skips == std::vector<uint64_t>{7});
  REQUIRE(curves.validations.size() == 4);
  CHECK(curves.validations[1] == ValidationPoint{20, 1, 1.0, 0.75, 0.9, true});
  REQUIRE(curves.best() != nullptr);
  CHECK(curves.best()->step == 20);
  for (const size_t piece : {1, 2, 3, 17, 64, 501}) {
    RunLog log("log.csv");
    for (size_t at = 0; at < text.size(); at += piece) log.add(std::string_view(text).substr(at, piece));
    const RunCurves same = log.curves();
    CHECK(log.lines() == whole.lines());
    CHECK(same.validations == curves.validations);
    CHECK(same.images_per_second == curves.images_per_second);
    CHECK(same.skips == curves.skips);
  }
}

TEST_CASE("of equal validations the best is the one of the lowest loss, and it stays among thousands") {
  RunLog log("log.csv");
  log.add(heading);
  for (uint64_t i = 1; i <= 9001; ++i)
    log.add(validation(i, i == 4444 ? 0.25 : 0.5, i % 2 == 0 ? 0.75 : 0.5, false));
  const RunCurves curves = log.curves();
  CHECK(curves.validations.size() <= 2001);
  CHECK(curves.best()->step == 4444);
  CHECK(curves.validations.back().step == 9001);
  CHECK(std::ranges::is_sorted(curves.validations, {}, &ValidationPoint::step));
}

TEST_CASE("columns are known by their names, in any order and among others") {
  RunLog log("log.csv");
  log.add("epoch,loss_scale,step,loss\r\n1,1024,5,0.5\r\n");
  const RunCurves curves = log.curves();
  REQUIRE(curves.loss.size() == 1);
  CHECK(curves.loss[0].mean == 0.5);
  CHECK(curves.step == 5);
  CHECK(curves.learning_rate.empty());
}

TEST_CASE("a log of hundreds of thousands of updates takes 2000 points") {
  RunLog log("log.csv");
  log.add(heading);
  for (uint64_t i = 1; i <= 100'000; ++i) log.add(update(i, i == 77'777 ? 50 : 1));
  const RunCurves curves = log.curves();
  CHECK(curves.loss.size() <= 2000);
  CHECK(curves.loss.size() >= 1000);
  CHECK(std::ranges::max(curves.loss, {}, &CurvePoint::high).high == 50);
  CHECK(curves.step == 100'000);
}

TEST_CASE("what is no training's log is refused in one sentence") {
  const auto refuse = [](const std::string& text, const char* words) {
    RunLog log("R/log.csv");
    CHECK_THROWS_MATCHES(log.add(text), Error, MessageMatches(ContainsSubstring(words)));
  };
  refuse("a,b\n1,2\n", "line 1: found \"a,b\"");
  refuse("step,epoch,loss,loss\n", "line 1");
  refuse(heading + "1,1,x,0,0,0,0,,,,\n", "R/log.csv, line 2: found \"x\" for loss, expected a number");
  refuse(heading + "1,1,0.5\n", "found 3 values, expected 11");
  refuse(heading + "1,1,0.5,0,0,0,0,,,,,\n", "found 12 values");
  refuse(heading + "1.5,1,0.5,0,0,0,0,,,,\n", "no whole number for step");
  refuse(heading + "-1,1,0.5,0,0,0,0,,,,\n", "no whole number for step");
  refuse(heading + "1e300,1,0.5,0,0,0,0,,,,\n", "no whole number for step");
  refuse(heading + ",1,0.5,0,0,0,0,,,,\n", "no whole number for step");
  refuse(heading + update(3, 1) + update(2, 1), "line 3: found step 2 behind step 3");
  refuse(heading + update(3, 1) + update(3, 1), "line 3: found step 3 behind step 3");
  refuse(std::string(5000, 'x'), "more than 4096 bytes");
  refuse(heading + std::string(1 << 20, '\0'), "line 2");
}

TEST_CASE("a log is followed while it grows, is cut back, and is replaced") {
  const test::TemporaryFolder folder;
  const auto file = folder / "log.csv";
  RunFollower follower(folder.path());
  // Before there is one.
  CHECK(!follower.read_more());
  CHECK(follower.at_end());
  CHECK(follower.curves().step == 0);
  append(file, heading + update(1, 2) + "2,1,1.9");
  CHECK(follower.read_more());
  CHECK(follower.curves().step == 1);
  CHECK(!follower.read_more());
  append(file, "25,0.001,2.5,0,250,,,,\n" + update(3, 1.8));
  CHECK(follower.read_more());
  CHECK(follower.curves().step == 3);
  CHECK(follower.curves().loss[1].mean == 1.925);

  // A training that goes on from a checkpoint cuts what it had written behind that, and writes it again.
  std::string text = heading;
  for (uint64_t i = 1; i <= 2000; ++i) text += update(i, 1, 0, "100");
  folder.file("log.csv", text);
  read_all(follower);
  CHECK(follower.curves().step == 2000);
  std::filesystem::resize_file(file, heading.size() + 1000 * 4);
  REQUIRE(follower.read_more());
  CHECK(follower.curves().step < 200);
  // Cut and written on further than it was, between two looks.
  folder.file("log.csv", text);
  read_all(follower);
  std::string other = heading;
  for (uint64_t i = 1; i <= 2100; ++i) other += update(i, 1, 0, i > 1000 ? "99.75" : "100");
  folder.file("log.csv", other);
  read_all(follower);
  CHECK(follower.curves().step == 2100);
  CHECK(follower.curves().images_per_second.back().low == 99.75);
  // The last line alone was another.
  append(file, "2101,1,0.5,1,1,0,1,,,,\n");
  read_all(follower);
  std::filesystem::resize_file(file, other.size());
  append(file, "2101,1,0.7,1,1,0,1,,,,\n2102,1,0.8,1,1,0,1,,,,\n");
  read_all(follower);
  CHECK(follower.curves().step == 2102);
  CHECK(follower.curves().loss.back().last == 2102);

  // Gone, and there again; broken, and mended.
  std::filesystem::remove(file);
  CHECK(follower.read_more());
  CHECK(follower.curves().step == 0);
  folder.file("log.csv", heading + "no\n");
  CHECK_THROWS_AS(follower.read_more(), Error);
  CHECK_THROWS_AS(follower.read_more(), Error);
  folder.file("log.csv", heading + update(1, 1));
  CHECK(follower.read_more());
  CHECK(follower.curves().step == 1);
  // A large one that is broken at its end is refused at once from then on.
  std::string large = heading;
  for (uint64_t i = 1; large.size() < (size_t{5} << 20); ++i) large += update(i, 1, 0, "100");
  folder.file("log.csv", large + "no\n");
  CHECK_THROWS_AS(read_all(follower), Error);
  CHECK_THROWS_AS(follower.read_more(), Error);
  folder.file("log.csv", large);
  read_all(follower);
  CHECK(follower.curves().step > 100'000);
  folder.file("log.csv", heading + update(1, 1));
  CHECK(follower.read_more());
  // Nothing was written beside it.
  CHECK(folder.names() == std::vector<std::string>{"log.csv"});
}

TEST_CASE("a folder of pictures may hold another log") {
  const test::TemporaryFolder folder;
  folder.file("log.csv", "time,file\n1,a.jpg\n");
  CHECK(!looks_like_run_folder(folder.path()));
  folder.file("log.csv", "");
  CHECK(looks_like_run_folder(folder.path()));
  folder.file("log.csv", heading);
  CHECK(looks_like_run_folder(folder.path()));
}

TEST_CASE("a pipe instead of a log is refused and never waited for") {
  const test::TemporaryFolder folder;
  test::make_pipe(folder / "log.csv");
  RunFollower follower(folder.path());
  CHECK_THROWS_MATCHES(follower.read_more(), Error, MessageMatches(ContainsSubstring("no regular file")));
  CHECK(!is_run_folder(folder.path()));
}

TEST_CASE("several runs are watched, and named by what tells them apart") {
  const test::TemporaryFolder folder;
  for (const char* name : {"a/out", "b/out", "c"}) {
    std::filesystem::create_directories(folder / name);
    folder.file(std::string(name) + "/log.csv", heading + update(1, 2));
  }
  folder.file("c/training.json", R"({"epochs": 7})");
  std::atomic<int> changes = 0;
  RunWatch watch([&] { ++changes; });
  const auto until = [&](const std::function<bool()>& so) {
    for (int i = 0; i < 3000 && !so(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    CHECK(so());
  };
  watch.open(folder / "c");
  watch.open(folder / "c/");
  until([&] { return !watch.busy(); });
  REQUIRE(watch.states().size() == 1);
  CHECK(watch.states()[0]->name == "c");
  CHECK(watch.states()[0]->epochs == 7);
  CHECK(!watch.states()[0]->grows);
  watch.open(folder / "a/out");
  watch.open(folder / "b/out");
  until([&] { return !watch.busy(); });
  CHECK(watch.states()[1]->name == "a/out");
  CHECK(watch.states()[2]->name == "b/out");
  CHECK(changes > 0);
  // What comes is seen, and what is wrong is said there and nowhere else.
  append(folder / "c/log.csv", update(2, 1));
  until([&] { return watch.states()[0]->curves.step == 2 && watch.states()[0]->grows; });
  append(folder / "a/out/log.csv", "no\n");
  until([&] { return !watch.states()[1]->error.empty(); });
  CHECK(watch.states()[2]->error.empty());
  watch.close(folder / "a/out");
  REQUIRE(watch.states().size() == 2);
  CHECK(watch.states()[1]->name == "out");
  CHECK_THROWS_MATCHES(watch.open(folder.path()), Error,
                       MessageMatches(ContainsSubstring("found no log.csv")));
  CHECK_THROWS_AS(watch.open(folder / "none"), Error);
  // There is an end to how many.
  for (size_t i = 2; i < RunWatch::most; ++i) {
    const std::string name = "more" + std::to_string(i);
    std::filesystem::create_directory(folder / name);
    folder.file(name + "/log.csv", heading);
    watch.open(folder / name);
  }
  std::filesystem::create_directory(folder / "last");
  folder.file("last/log.csv", heading);
  CHECK_THROWS_MATCHES(watch.open(folder / "last"), Error, MessageMatches(ContainsSubstring("close one")));
}

}  // namespace vitrine::desktop
