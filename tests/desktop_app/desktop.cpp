#include "tests/desktop_app/desktop.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/util/system.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

const std::filesystem::path data = VITRINE_TEST_DATA;

// Pipelines that one run compiled are there for the next one; nothing is written into the user's folders.
std::map<std::string, std::string> environment(const std::string& display, const TemporaryFolder& folder) {
  return {{"DISPLAY", display},         {"WAYLAND_DISPLAY", ""},
          {"VITRINE_VALIDATE", "sync"}, {"VITRINE_CACHE_DIR", VITRINE_DESKTOP_CACHE},
          {"HF_HOME", folder / "hub"},  {"HF_HUB_CACHE", ""},
          {"HUGGINGFACE_HUB_CACHE", ""}};
}

}  // namespace

std::filesystem::path assets() { return data.parent_path() / "assets"; }
std::filesystem::path fixture(const std::string& name) { return data / "parity" / "fixtures" / name; }
std::filesystem::path picture(const std::string& name) { return data / "images" / "pictures" / name; }

std::string desktop_program() {
  const char* other = system::variable("VITRINE_TEST_DESKTOP");
  return other ? other : VITRINE_DESKTOP_PROGRAM;
}

Desktop::Desktop() {
  test_device();  // says why, where there is none
}

std::string Desktop::word(const std::filesystem::path& path) { return "\"" + path.string() + "\""; }

CommandResult Desktop::run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), desktop_program());
  return run_command(arguments, environment(display_.name(), folder_));
}

CommandResult Desktop::run_script(std::string script, std::vector<std::string> arguments) {
  for (size_t at = script.find('$'); at != std::string::npos; at = script.find('$', at))
    script.replace(at, 1, folder_.path().string());
  arguments.insert(arguments.end(), {"--script", folder_.file("script.txt", script)});
  return run(std::move(arguments));
}

CommandResult Desktop::play(const std::string& script, const std::vector<std::string>& arguments) {
  CommandResult result = run_script(script, arguments);
  INFO(script << "\n" << result.out << result.err);
  REQUIRE(result.status == 0);
  CHECK_THAT(result.out, Catch::Matchers::ContainsSubstring("device memory at exit: 0 allocations\n"));
  CHECK_THAT(result.err, !Catch::Matchers::ContainsSubstring("alidation"));
  return result;
}

CommandResult run_vitrine(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return run_command(arguments);
}

}  // namespace vitrine::test
