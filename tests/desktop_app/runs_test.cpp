// The curves of trainings of `vitrine train` in the desktop app's window, finished and while they go on.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "images/image.h"
#include "tests/desktop_app/desktop.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// Digits, and a training of them in the folder that has so many epochs.
struct Training {
  test::TemporaryFolder folder;

  explicit Training(int epochs) {
    const auto made = test::run_vitrine(
        {"digits", "--out", folder / "digits", "--train", "256", "--test", "64", "--seed", "0"});
    INFO(made.err);
    REQUIRE(made.status == 0);
    nlohmann::json config =
        nlohmann::json::parse(test::read_whole_file(test::assets() / "../configs/digits.json"));
    config["epochs"] = epochs;
    config["batch_size"] = 16;
    folder.file("config.json", config.dump());
  }
  std::vector<std::string> arguments(const std::string& out) const {
    return {VITRINE_PROGRAM,        "train", "--data",     folder / "digits",  "--config",
            folder / "config.json", "--out", folder / out, "--validate-every", "8"};
  }
  std::string log(const std::string& out) const { return test::read_whole_file(folder / (out + "/log.csv")); }
};

// Pixels of a screenshot that are about as red, green and blue.
size_t pixels_like(const std::filesystem::path& shot, int red, int green, int blue) {
  const Image image = decode_image(shot);
  size_t count = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    const auto off = [&](size_t channel, int wanted) { return std::abs(image.pixels[i + channel] - wanted); };
    count += off(0, red) + off(1, green) + off(2, blue) < 12 ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("the curves of a finished training are shown, named by the command line, dropped, and by scripts") {
  const Training training(2);
  test::Desktop desktop;
  const auto trained = test::run_command(training.arguments("out"));
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  const std::string log = training.log("out");
  double best = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    // step,epoch,,,,,,val_loss,val_accuracy,...
    const size_t at = line.find(",,,,,,");
    if (at != std::string::npos) best = std::max(best, std::stod(line.substr(line.find(',', at + 6) + 1)));
  }
  const std::string out = training.folder / "out", word = test::Desktop::word(out);
  desktop.play(
      "view runs\nframes 3\nshot $/none.png\nrun " + word +
      "\nwait\nexpect view runs\nexpect runs 1\nexpect run out\nexpect run-step 32\nexpect run-grows no\n"
      "expect run-skipped 0\ndump run-best $/best\nmouse loss 0.5 0.5\nframes 3\nshot $/curves.png\n"
      "export-csv $/curves.csv\nuntil said contains curves.csv\nexport-png $/curves-alone.png\n"
      "until said contains curves-alone\nclose-run " +
      word + "\nexpect runs 0\nexpect errors 0\n");
  CHECK(std::stod(desktop.written("best")) == best);
  // Lines in the accent's color, which a button has without any.
  CHECK(pixels_like(desktop / "curves.png", 0xf0, 0xa1, 0x3a) >
        pixels_like(desktop / "none.png", 0xf0, 0xa1, 0x3a) + 1000);
  CHECK_THAT(desktop.written("curves.csv"),
             ContainsSubstring("\r\nout,loss,32,") && ContainsSubstring("\r\nout,val_accuracy,32,"));
  desktop.play("wait\nexpect view runs\nexpect runs 1\ndrop " + word + " " +
                   test::Desktop::word(test::assets() / "samples/3.png") +
                   "\nwait\nexpect runs 1\nexpect view attention\nexpect answer 3\nkey f7\nframes 2\n"
                   "expect view runs\nresize 400 300\nframes 3\ntheme light\nresize 1200 900\nframes 3\n"
                   "expect errors 0\n",
               {out});
  // Whoever looks on changes nothing.
  CHECK(training.log("out") == log);
}

TEST_CASE("the curves of a training grow while it goes on, and it isn't disturbed") {
  const Training training(100'000);
  test::Desktop desktop;
  test::RunningCommand command(training.arguments("out"));
  for (int i = 0; i < 600 && !std::filesystem::exists(training.folder / "out/log.csv"); ++i) usleep(100'000);
  desktop.play("run " + test::Desktop::word(training.folder / "out") +
               "\nuntil run-step >= 10\ndump run-step $/first\nuntil run-grows yes\nuntil run-step >= 40\n"
               "dump run-step $/later\nshot $/live.png\nexpect errors 0\n");
  CHECK(std::stoi(desktop.written("later")) > std::stoi(desktop.written("first")));
  command.send(SIGINT);
  const auto ended = command.wait();
  INFO(ended.err);
  CHECK_THAT(ended.err, ContainsSubstring("--resume"));
}

TEST_CASE("a folder that is no training's is a sentence in the window") {
  test::Desktop desktop;
  std::filesystem::create_directories(desktop / "broken");
  std::ofstream(desktop / "broken/log.csv") << "mine\n";
  const auto result = desktop.play(
      "run " + test::Desktop::word(test::assets() / "samples") +
      "\nexpect errors 1\nexpect error contains \"no training's folder\"\nrun $/none\nexpect errors 2\n"
      // A log that isn't one says so where its curves would be.
      "run $/broken\nwait\nexpect runs 1\nexpect run contains \"line 1: found \"\nexpect errors 2\nframes "
      "2\n");
  CHECK_THAT(result.err, ContainsSubstring("expected what vitrine train --out has written to"));
}

}  // namespace vitrine
