#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/system.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

test::CommandResult vitrine(std::vector<std::string> arguments,
                            const std::map<std::string, std::string>& environment = {}) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(arguments, environment);
}

size_t lines_of(const std::string& text) { return static_cast<size_t>(std::ranges::count(text, '\n')); }

}  // namespace

TEST_CASE("vitrine devices names the device that would be used and why") {
  const Capabilities& device = test::test_device().device->capabilities();
  const test::CommandResult text = vitrine({"devices"});
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  CHECK_THAT(text.out, ContainsSubstring(device.name) && ContainsSubstring(device.driver_info) &&
                           ContainsSubstring("chosen: "));

  const test::CommandResult json = vitrine({"devices", "--json"});
  CHECK(json.status == 0);
  std::istringstream lines(json.out);
  size_t chosen = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    for (const char* key : {"index", "kind", "driver", "supports", "subgroup_size", "advice", "reason"}) {
      CHECK(object.contains(key));
    }
    if (!object["chosen"].get<bool>()) continue;
    ++chosen;
    CHECK(object["name"] == device.name);
    CHECK(object["subgroup_size"] == device.subgroup_size);
    CHECK(object["advice"] == device.advice);
  }
  CHECK(chosen == 1);
}

TEST_CASE("vitrine devices takes --device and VITRINE_DEVICE") {
  const std::string name = test::test_device().device->capabilities().name;
  CHECK(vitrine({"devices", "--device", "0"}).status == 0);
  CHECK(vitrine({"--device", name, "devices"}).status == 0);
  const test::CommandResult none = vitrine({"devices", "--device", "voodoo"});
  CHECK(none.status == 3);
  CHECK_THAT(none.err, StartsWith("vitrine: no Vulkan device matches 'voodoo'"));
  CHECK(lines_of(none.err) == 1);
  CHECK_THAT(none.out, ContainsSubstring("'voodoo' was asked for"));
  CHECK(vitrine({"devices"}, {{"VITRINE_DEVICE", "voodoo"}}).status == 3);
  CHECK(vitrine({"devices", "--device", "0"}, {{"VITRINE_DEVICE", "voodoo"}}).status == 0);
}

TEST_CASE("without a driver vitrine exits with 3 and says what to install") {
  const test::CommandResult result = vitrine({"devices"}, {{"VK_DRIVER_FILES", test::no_driver_files()}});
  CHECK(result.status == 3);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, StartsWith("vitrine: ") && ContainsSubstring("mesa-vulkan-drivers"));
  CHECK(lines_of(result.err) == 1);
}

TEST_CASE("wrong usage exits with 2 and one sentence") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"conjure"}, {"devices", "--jsn"}, {"devices", "--dtype", "f64"}, {"devices", "--seed", "x"}}) {
    const test::CommandResult result = vitrine(arguments);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, StartsWith("vitrine: "));
    CHECK(lines_of(result.err) == 1);
  }
  const test::CommandResult variable = vitrine({"devices"}, {{"VITRINE_VALIDATE", "perhaps"}});
  CHECK(variable.status == 2);
  CHECK_THAT(variable.err, ContainsSubstring("VITRINE_VALIDATE is 'perhaps'"));
}

TEST_CASE("--help and --version succeed on stdout") {
  const test::CommandResult version = vitrine({"--version"});
  CHECK(version.status == 0);
  CHECK_THAT(version.out, StartsWith("vitrine "));
  const test::CommandResult help = vitrine({"--help"});
  CHECK(help.status == 0);
  CHECK_THAT(help.out, ContainsSubstring("devices"));
}

}  // namespace vitrine
