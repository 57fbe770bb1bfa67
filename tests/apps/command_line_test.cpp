// What all commands have in common.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

const test::Path picture = test::Path(VITRINE_TEST_DATA) / "images" / "pictures" / "jpeg_8x8.jpg";

test::CommandResult vitrine(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(arguments);
}

// The commands that the help names, a line each.
std::vector<std::string> commands_of(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help);
  bool there = false;
  for (std::string line; std::getline(lines, line);) {
    std::string name;
    if (there && line.starts_with("  ") && !line.starts_with("   ") && std::istringstream(line) >> name)
      names.push_back(name);
    there = there || line.starts_with("Subcommands:") || line.starts_with("SUBCOMMANDS:");
  }
  return names;
}

}  // namespace

TEST_CASE("vitrine alone shows its help") {
  const test::CommandResult help = vitrine({"--help"});
  CHECK(help.status == 0);
  CHECK(help.err.empty());
  const test::CommandResult alone = vitrine({});
  CHECK(alone.status == 2);
  CHECK(alone.out.empty());
  CHECK(alone.err == help.out);
  check_failure(vitrine({"clasify"}), 2, {"clasify"});
}

TEST_CASE("every command takes --json") {
  const std::vector<std::string> commands = commands_of(vitrine({"--help"}).out);
  CHECK(commands.size() >= 13);
  for (const std::string& command : commands) {
    CAPTURE(command);
    const test::CommandResult help = vitrine({command, "--help"});
    CHECK(help.status == 0);
    CHECK_THAT(help.out, ContainsSubstring("--json"));
  }
}

TEST_CASE("an architecture's name behind --model is pointed to --arch") {
  const std::string name = "vit_base_patch16_224";
  const test::TemporaryFolder folder;
  const std::vector<std::string> words{"--model", name, "--arch " + name};
  check_failure(vitrine({"classify", picture, "--model", name}), 4, words);
  check_failure(vitrine({"bench", "--model", name}), 4, words);
  check_failure(vitrine({"eval", "--data", folder.path(), "--model", name}), 4, words);
  // What is there is read, whatever its name.
  std::filesystem::create_directory(folder / name);
  const test::CommandResult there =
      test::run_command({"/bin/sh", "-c", "cd \"$1\" && exec \"$2\" bench --model \"$3\"", "sh",
                         folder.path(), VITRINE_PROGRAM, name});
  CHECK(there.status == 4);
  CHECK(there.err.find("--arch") == std::string::npos);
}

TEST_CASE("names that can't be looked at end in one sentence") {
  const test::TemporaryFolder folder;
  const std::string longest = folder / std::string(256, 'x');
  std::error_code error;
  static_cast<void>(std::filesystem::exists(longest, error));
  if (!error) SKIP("here such a name is that of nothing");
  const std::vector<std::string> words{"cannot look at " + longest};
  check_failure(vitrine({"classify", picture, "--model", longest}), 4, words);
  check_failure(vitrine({"inspect", longest}), 4, words);
  const std::string config = folder.file("config.json", R"({"model": {"classes": 4}})");
  check_failure(vitrine({"train", "--data", folder.path(), "--config", config, "--out", longest}), 1, words);
}

}  // namespace vitrine
