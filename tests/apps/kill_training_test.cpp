// A training with everything on that is killed at random moments: kill_training.py, which says what is the
// same.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a training with everything on that is killed at any moment leaves the same files") {
  test::test_device();
  if (test::run_command({"/bin/sh", "-c", "command -v python3"}).status != 0) SKIP("there is no python3");
  const fs::path script = fs::path(VITRINE_TEST_DATA) / "apps/kill_training.py";
  const test::TemporaryFolder folder;
  const std::string kills = test::computes_slowly() ? "2" : "5";
  const auto refused = test::run_command({"/usr/bin/env", "python3", script, "--program", VITRINE_PROGRAM,
                                          "--kills", "1", "--", "--no-such-option"});
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, ContainsSubstring("--no-such-option"));

  const auto killed =
      test::run_command({"/usr/bin/env", "python3", script, "--program", VITRINE_PROGRAM, "--kills", kills,
                         "--seed", "2", "--work", folder / "work", "--", "--patience", "50"});
  INFO(killed.err);
  REQUIRE(killed.status == 0);
  const auto said = nlohmann::json::parse(killed.out);
  CHECK(said.at("kills") == std::stoi(kills));
  CHECK(said.at("differing").empty());
  CHECK(said.at("files").size() == 13);

  // What it would find: each of these alone, and no time.
  const auto differing = [&](const std::string& change) {
    const std::string code =
        "import pathlib, shutil, sys\nsys.dont_write_bytecode = True\nsys.path.insert(0, sys.argv[1])\n"
        "import kill_training as k\nwork = pathlib.Path(sys.argv[2])\nother = work / 'other'\n"
        "shutil.rmtree(other, ignore_errors=True)\nshutil.copytree(work / 'whole', other)\n"
        "def change(name, at):\n"
        "  data = bytearray((other / name).read_bytes())\n"
        "  data[at] ^= 1\n"
        "  (other / name).write_bytes(data)\n" +
        change + "\nprint('; '.join(k.differences(work / 'whole', other)))";
    const auto compared = test::run_command(
        {"/usr/bin/env", "python3", "-c", code, script.parent_path().string(), folder / "work"});
    INFO(compared.err);
    REQUIRE(compared.status == 0);
    return compared.out;
  };
  CHECK(differing("") == "\n");
  CHECK(differing("change('best/model.safetensors', -1)") == "best/model.safetensors differs\n");
  CHECK(differing("change('checkpoint.safetensors', -1)") == "checkpoint.safetensors differs\n");
  CHECK(differing("change('checkpoints/epoch-000009.safetensors', -1)") ==
        "checkpoints/epoch-000009.safetensors differs\n");
  CHECK(differing("change('log.csv', -2)") == "log.csv differs\n");
  // The first record's time begins behind its length, the length's checksum and the field's number.
  CHECK(differing("change(k.EVENTS, 13)") == "\n");
  CHECK(differing("change(k.EVENTS, -5)") == "events.out.tfevents.0.vitrine differs\n");
  CHECK(differing("(other / '.last.7.1.tmp').write_text('')") == ".last.7.1.tmp is one too many\n");
  CHECK(differing("(other / 'training.json').unlink()") == "training.json is missing\n");
}

}  // namespace vitrine
