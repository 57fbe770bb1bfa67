// The program that is started once more is this one, with the name of one of the hidden tests at the end.
#include "runtime/util/isolated.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "runtime/util/error.h"
#include "runtime/util/report_reader.h"
#include "runtime/util/system.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// As the program itself does: what Windows' streams do to ends of lines.
void begin() { system::begin_program(0, nullptr); }

struct Run {
  std::vector<std::string> lines;
  std::string ended;
};
std::optional<std::string> start(const std::string& hidden,
                                 const std::function<void(const std::string&)>& take, int patience_seconds) {
  std::optional<std::string> ended = run_isolated({hidden}, take, patience_seconds);
  // What posix_spawn() leaves where it can't tell of it: an emulator's programs are none that the system
  // starts.
  if (ended && ended->ends_with("status 127")) SKIP("the system starts no programs like this one");
  return ended;
}
Run run(const std::string& hidden, int patience_seconds = 60) {
  Run result;
  const auto take = [&](const std::string& line) { result.lines.push_back(line); };
  result.ended = start(hidden, take, patience_seconds).value_or("");
  return result;
}

}  // namespace

TEST_CASE("started once more: speaks", "[.]") {
  begin();
  std::puts("what a driver says");
  report("first");
  std::fputs("its line has no end", stdout);
  report(std::string(300'000, 'x'));
  report("");
  report("last");
  std::_Exit(0);
}

TEST_CASE("started once more: crashes", "[.]") {
  begin();
  report("before");
  // Past sanitizers' handlers, which would turn it into an exit.
  std::signal(SIGSEGV, SIG_DFL);
  volatile uintptr_t nowhere = 16;
  *reinterpret_cast<volatile int*>(nowhere) = 1;
}

TEST_CASE("started once more: gives up", "[.]") {
  begin();
  std::_Exit(7);
}

TEST_CASE("started once more: hangs", "[.]") {
  begin();
  report("before");
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

TEST_CASE("an isolated program is heard line by line, as much as it says") {
  const Run result = run("started once more: speaks");
  CHECK(result.lines == std::vector<std::string>{"first", std::string(300'000, 'x'), "", "last"});
  CHECK(result.ended.empty());
}

TEST_CASE("an isolated program that crashes, fails or hangs takes nothing else down") {
  const Run crashed = run("started once more: crashes");
  REQUIRE(!crashed.lines.empty());
  CHECK(crashed.lines[0] == "before");
  CHECK_THAT(crashed.ended, ContainsSubstring("the driver ended the process with"));
  CHECK_THAT(run("started once more: gives up").ended, ContainsSubstring("status 7"));
  const Run hung = run("started once more: hangs", 5);
  CHECK(hung.lines == std::vector<std::string>{"before"});
  CHECK_THAT(hung.ended, ContainsSubstring("more than 5 s"));
}

TEST_CASE("what the reader of an isolated program throws ends it") {
  std::string refused;
  const auto refuse = [](const std::string& line) {
    if (line == "before") throw Error(ErrorCode::no_device, "none");
  };
  try {
    start("started once more: hangs", refuse, 60);
  } catch (const Error& error) {
    refused = error.what();
  }
  CHECK(refused == "none");
}

TEST_CASE("reports come whole, whatever the pieces, and nothing else comes") {
  std::vector<std::string> lines;
  ReportReader reader([&](const std::string& line) { lines.push_back(line); });
  for (const char* piece : {"\x1e"
                            "a",
                            "b\n\n\x1e",
                            "\nnot this\nnor this\x1e"
                            "d",
                            "e\n",
                            "\x1e"
                            "f"})
    reader.add(piece);
  CHECK(lines == std::vector<std::string>{"ab", "", "de"});
}

}  // namespace vitrine
