// The scripts of bench/ that say what was measured, on made-up measurements. Without Python there is nothing
// to test.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;

test::CommandResult script(const char* name, const std::vector<std::string>& arguments) {
  std::vector<std::string> command{"/usr/bin/env", "python3",
                                   fs::path(VITRINE_TEST_DATA).parent_path() / "bench" / name};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return test::run_command(command);
}

void skip_without_python() {
  if (test::run_command({"/bin/sh", "-c", "command -v python3"}).status != 0) SKIP("there is no python3");
}

// What bench/compare.py --json leaves of Vitrine and one peer, at two batch sizes.
std::string measured(const std::string& dtype, const std::string& at_1, const std::string& at_8) {
  const auto row = [&](const std::string& family, int batch, const std::string& rest) {
    return R"({"system":")" + family + R"(","family":")" + family + R"(","arch":"vit_b","dtype":")" + dtype +
           R"(","batch":)" + std::to_string(batch) + "," + rest + "}";
  };
  const std::string ours = R"("rounds":[{}],"times_vitrine":1.0)";
  return R"({"systems":[)" + row("vitrine", 8, ours) + "," + row("pytorch-compiled", 8, at_8) + "," +
         row("vitrine", 1, ours) + "," + row("pytorch-compiled", 1, at_1) + "," +
         row("pytorch-eager", 1, R"("rounds":[{}],"times_vitrine":9.0)") + "]}";
}

}  // namespace

TEST_CASE("bench/verdict.py says in one sentence how much longer torch.compile takes, by batch") {
  skip_without_python();
  const test::TemporaryFolder folder;
  const fs::path half = folder.file("f16.json", measured("f16", R"("rounds":[{}],"times_vitrine":1.432)",
                                                         R"("rounds":[{}],"times_vitrine":0.918)"));
  const fs::path single = folder.file("f32.json", measured("f32", R"("rounds":[],"refused":"no\nCUDA here")",
                                                           R"("rounds":[],"refused":"no\nCUDA here")"));
  const test::CommandResult both = script("verdict.py", {half, single});
  CHECK(both.err == "");
  CHECK(both.status == 0);
  CHECK(both.out ==
        "torch.compile takes, in times of Vitrine's for vit_b: in f16 1.43 at batch 1 and 0.92 at batch 8; "
        "in f32 nothing can be said (CUDA here).\n");

  const test::CommandResult none = script("verdict.py", {folder.file("none.json", R"({"systems":[]})")});
  CHECK(none.status == 1);
  CHECK(none.err == "verdict.py: no systems were measured\n");
}

TEST_CASE(
    "bench/table.py makes tables of models, operators and trainings, and names a file that isn't there") {
  skip_without_python();
  const test::TemporaryFolder folder;
  const fs::path training = folder.file(
      "train.log",
      "a line of words\n"
      R"({"config":"c.json","batch":4,"device":"card","driver":"driver 1","median_ms":2,"min_ms":1,"max_ms":3,)"
      R"("images_per_second":5,"peak_device_bytes":1048576})"
      "\n"
      R"({"peer":"pytorch","config":"c.json","batch":4,"dtype":"f16","device":"cpu","median_ms":2,"min_ms":1,)"
      R"("max_ms":3,"images_per_second":5,"memory_bytes":null})"
      "\n");
  const test::CommandResult table = script("table.py", {training, folder / "nothing"});
  CHECK(table.status == 0);
  CHECK_THAT(table.out, Catch::Matchers::StartsWith("card, driver 1; cpu\n") &&
                            Catch::Matchers::ContainsSubstring(
                                "| vitrine | c.json | f32 | 4 | 2.000 (1.000–3.000) | 5.0 | 1 MiB |\n") &&
                            Catch::Matchers::ContainsSubstring(
                                "| pytorch | c.json | f16 | 4 | 2.000 (1.000–3.000) | 5.0 | – |\n"));
  CHECK_THAT(table.err, Catch::Matchers::ContainsSubstring("nothing"));
}

}  // namespace vitrine
