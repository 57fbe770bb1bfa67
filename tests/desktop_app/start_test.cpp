// How the desktop app starts, and how it doesn't.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "apps/desktop/script/actions.h"
#include "tests/desktop_app/desktop.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

test::CommandResult without_display(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), test::desktop_program());
  return test::run_command(arguments, {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}});
}

void check_one_sentence(const test::CommandResult& result, int status) {
  INFO(result.out << result.err);
  CHECK(result.status == status);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, StartsWith("vitrine-desktop: "));
  CHECK(std::ranges::count(result.err, '\n') == 1);
}

}  // namespace

TEST_CASE("without a display the desktop app says so, and exits with 3") {
  const auto result = without_display({});
  check_one_sentence(result, 3);
  CHECK_THAT(result.err, ContainsSubstring("display"));
  check_one_sentence(without_display({"--screenshot", "/nowhere/a.png"}), 3);
}

TEST_CASE("with a display but no Vulkan driver the desktop app says so, and exits with 3") {
  const test::VirtualDisplay display;
  const auto result =
      test::run_command({test::desktop_program()}, {{"DISPLAY", display.name()},
                                                    {"WAYLAND_DISPLAY", ""},
                                                    {"VK_DRIVER_FILES", "/nowhere/driver.json"},
                                                    {"VK_ICD_FILENAMES", ""},
                                                    {"VK_ADD_DRIVER_FILES", ""}});
  check_one_sentence(result, 3);
  CHECK_THAT(result.err, ContainsSubstring("driver"));
}

TEST_CASE("wrong options of the desktop app are refused before a window opens, with exit status 2") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--nonsense"},
                                                    {"--size", "large"},
                                                    {"--size", "1x1"},
                                                    {"--size", "1280x800x2"},
                                                    {"--size", "99999x800"},
                                                    {"--theme", "blue"},
                                                    {"--dtype", "f99"},
                                                    {"--frames", "0"},
                                                    {"--frames", "many"},
                                                    {"--script", "/nowhere/script.txt"}}) {
    INFO(arguments.back());
    check_one_sentence(without_display(arguments), 2);
  }
}

TEST_CASE("a script with a mistake is refused before a window opens, with exit status 2") {
  const test::TemporaryFolder folder;
  const auto result =
      without_display({"--script", folder.file("bad.txt", "open a.png\nwait\nlayer three\n")});
  check_one_sentence(result, 2);
  CHECK_THAT(result.err, ContainsSubstring("bad.txt, line 3: found \"layer three\", expected layer N"));
}

TEST_CASE("an unknown device of the desktop app is refused with exit status 3") {
  test::Desktop desktop;
  const auto result = desktop.run({"--device", "no such device"});
  INFO(result.err);
  CHECK(result.status == 3);
  CHECK_THAT(result.err, StartsWith("vitrine-desktop: ") && ContainsSubstring("no such device"));
}

TEST_CASE("the desktop app says its version and lists the actions of scripts without a display") {
  const auto version = without_display({"--version"});
  CHECK(version.status == 0);
  CHECK_THAT(version.out, StartsWith("vitrine-desktop "));
  const auto help = without_display({"--script-help"});
  CHECK(help.status == 0);
  CHECK(help.out == desktop::script_help());
}

TEST_CASE("the documentation lists the actions of scripts as the desktop app does") {
  const std::string page = test::read_whole_file(test::assets().parent_path() / "docs" / "desktop.md");
  CHECK_THAT(page, ContainsSubstring("```\n" + desktop::script_help() + "```\n"));
}

}  // namespace vitrine
