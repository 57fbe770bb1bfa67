#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <csignal>
#include <cstdint>
#include <random>
#include <vector>

#include "images/png_writer.h"
#include "runtime/util/error.h"
#include "tests/support/corpus.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

// What the file says about a full disk passes through libpng unharmed.
TEST_CASE("a PNG that does not fit on the disk leaves what was there") {
  const TemporaryFolder folder;
  folder.file("x.png", "old");
  std::mt19937 random(1);
  std::vector<uint8_t> noise(270'000);  // which no compression makes smaller
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random() >> 24);
  const Outcome outcome = run_apart([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 10'000, .rlim_max = 10'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    write_png(folder / "x.png", 300, 300, 3, noise);
  });
  CHECK(outcome.code == ErrorCode::failed);
  CHECK(outcome.message == "cannot write " + (folder / "x.png").string() + ": File too large");
  CHECK(folder.names() == std::vector<std::string>{"x.png"});
  CHECK(read_whole_file(folder / "x.png") == "old");
}

}  // namespace
}  // namespace vitrine::test
