// A training in the desktop app's window.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "tests/desktop_app/desktop.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// A thousand digits, of this machine's fonts.
std::filesystem::path make_digits(const test::TemporaryFolder& folder) {
  const auto made = test::run_vitrine(
      {"digits", "--out", folder / "digits", "--train", "1024", "--test", "256", "--seed", "0"});
  INFO(made.err);
  REQUIRE(made.status == 0);
  return folder / "digits";
}

}  // namespace

TEST_CASE("a training is started, watched, paused, resumed and saved, and what was saved is a model") {
  const test::TemporaryFolder folder;
  const auto digits = make_digits(folder);
  test::Desktop desktop;
  // Long enough for any device to be at it still when the script comes to its end.
  nlohmann::json config =
      nlohmann::json::parse(test::read_whole_file(test::assets() / "../configs/digits.json"));
  config["epochs"] = 1000;
  std::ofstream(desktop / "long.json") << config;
  desktop.play(
      "view train\ntrain $/long.json " + desktop.word(digits) +
      "\ntrain-steps 3\ndump loss $/first\npause\nuntil training paused\ndump steps $/paused\n"
      "frames 20\ndump steps $/still\nresume\ntrain-steps 40\nexpect training training\ndump loss $/last\n"
      "shot $/train.png\nexport-csv $/curve.csv\nuntil said contains curve.csv\nsave $/saved\nuntil saved "
      "$/saved\nexpect errors 0\n");
  CHECK(desktop.written("paused") == desktop.written("still"));
  CHECK(std::stod(desktop.written("first")) > std::stod(desktop.written("last")));
  CHECK_THAT(desktop.written("curve.csv"), ContainsSubstring("\r\ntraining,"));
  const auto said = test::run_vitrine({"eval", "--data", digits.string(), "--model", desktop / "saved"});
  INFO(said.err);
  CHECK(said.status == 0);

  // The next day it goes on.
  desktop.play("view train\ntrain $/saved " + desktop.word(digits) +
               "\nuntil training training\ntrain-steps 3\nexpect training training\ndump steps "
               "$/next\nexpect errors 0\n");
  CHECK(std::stoi(desktop.written("next")) >= 46);
}

TEST_CASE("the window may be closed while it trains") {
  const test::TemporaryFolder folder;
  const auto digits = make_digits(folder);
  test::Desktop desktop;
  desktop.play("view train\ntrain digits " + desktop.word(digits) + "\ntrain-steps 2\nclose\n");
  // And while it only begins to.
  desktop.play("view train\ntrain digits " + desktop.word(digits) + "\nclose\n");
}

TEST_CASE("a training that can't begin is a sentence in the window") {
  test::Desktop desktop;
  const auto result = desktop.play(
      "view train\ntrain $/none.json\nwait\nexpect errors 1\n"
      "expect error contains none.json\ntrain digits $/nothing\nuntil training failed\n"
      // A folder that no training was saved to.
      "train " +
      desktop.word(test::assets()) +
      "\nwait\nexpect errors 2\nexpect error contains training.json\n"
      // No file system takes such a name.
      "train " +
      std::string(300, 'x') +
      "\nwait\nexpect errors 3\nexpect error contains xxx\n"
      "open " +
      desktop.word(test::assets() / "samples/4.png") + "\nwait\nexpect answer 4\n");
  CHECK_THAT(result.err, ContainsSubstring("none.json"));
}

}  // namespace vitrine
