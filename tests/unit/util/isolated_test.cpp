#include "runtime/util/isolated.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <stdexcept>
#include <vector>

#include "runtime/util/error.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

struct Run {
  std::vector<std::string> lines;
  std::string ended;
};
Run run(const std::function<void(const Report&)>& work, int patience_seconds = 60) {
  Run result;
  const auto take = [&](const std::string& line) { result.lines.push_back(line); };
  result.ended = run_isolated(work, take, patience_seconds).value_or("");
  return result;
}

}  // namespace

TEST_CASE("isolated work reports line by line, as much as it likes") {
  const Run result = run([](const Report& report) {
    report("first");
    report(std::string(300'000, 'x'));
    report("");
    report("last");
  });
  CHECK(result.lines == std::vector<std::string>{"first", std::string(300'000, 'x'), "", "last"});
  CHECK(result.ended.empty());
}

TEST_CASE("isolated work that crashes, throws or hangs takes nothing else down") {
  const Run crashed = run([](const Report& report) {
    report("before");
    // Past sanitizers' handlers, which would turn it into an exit.
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  });
  CHECK(crashed.lines == std::vector<std::string>{"before"});
  CHECK_THAT(crashed.ended, ContainsSubstring("signal 11"));
  CHECK_THAT(run([](const Report&) { _exit(7); }).ended, ContainsSubstring("status 7"));
  CHECK_THAT(run([](const Report&) { throw std::runtime_error("thrown on purpose"); }).ended,
             ContainsSubstring("status 1"));
  const Run hung = run(
      [](const Report& report) {
        report("before");
        for (;;) pause();
      },
      1);
  CHECK(hung.lines.size() == 1);
  CHECK_THAT(hung.ended, ContainsSubstring("more than 1 s"));
}

TEST_CASE("what the reader of isolated work throws ends it") {
  CHECK_THROWS_AS(run_isolated(
                      [](const Report& report) {
                        report("line");
                        for (;;) pause();
                      },
                      [](const std::string&) { throw Error(ErrorCode::no_device, "none"); }, 60),
                  Error);
}

}  // namespace vitrine
