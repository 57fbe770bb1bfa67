// What a terminal is shown besides.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/support/command.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// A terminal that keeps what is written to it.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK)) {
    REQUIRE(master_ >= 0);
    REQUIRE(grantpt(master_) == 0);
    REQUIRE(unlockpt(master_) == 0);
    name_ = ptsname(master_);
    held_ = open(name_.c_str(), O_RDWR | O_NOCTTY);
    REQUIRE(held_ >= 0);
  }
  ~Terminal() {
    close(held_);
    close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  const std::string& name() const { return name_; }
  std::string written() const {
    std::string text;
    char part[4096];
    for (ssize_t got; (got = read(master_, part, sizeof part)) > 0;)
      text.append(part, static_cast<size_t>(got));
    return text;
  }

 private:
  int master_, held_ = -1;
  std::string name_;
};

}  // namespace

TEST_CASE("a terminal is told how many random weights are made") {
  test::test_device();
  const std::vector<std::string> bench{VITRINE_PROGRAM, "bench", "--arch", "vit_tiny_patch16_224",
                                       "--image-size",  "32",    "--runs", "1"};
  const std::string made = " of 5 million random weights";
  const Terminal terminal;
  std::vector<std::string> shell{"/bin/sh", "-c", "terminal=$1; shift; exec \"$@\" 2>\"$terminal\"", "sh",
                                 terminal.name()};
  shell.insert(shell.end(), bench.begin(), bench.end());
  CHECK(test::run_command(shell).status == 0);
  const std::string written = terminal.written();
  for (const char* count : {"\r0", "\r1", "\r4"}) CHECK_THAT(written, ContainsSubstring(count + made));
  // Nothing of it stays.
  CHECK(written.ends_with("\r\033[K"));

  const test::CommandResult file = test::run_command(bench);
  CHECK(file.status == 0);
  CHECK(file.err == "vit_tiny_patch16_224 with random weights from seed 0\n");
}

}  // namespace vitrine
