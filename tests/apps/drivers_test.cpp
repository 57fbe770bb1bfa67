// How tests get to other drivers: tests/drivers/with_driver and what it is made of. No driver is needed here.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

const fs::path drivers = fs::path(VITRINE_TEST_DATA) / "drivers";

test::CommandResult with_driver(std::vector<std::string> arguments,
                                const std::map<std::string, std::string>& environment = {}) {
  arguments.insert(arguments.begin(), drivers / "with_driver");
  return test::run_command(arguments, environment);
}

// A folder for PATH with what the scripts are written with, and no apt.
class NoApt {
 public:
  NoApt() {
    for (const char* tool : {"bash", "env", "basename", "dirname", "sed", "sort", "tail", "xargs"}) {
      for (const char* place : {"/usr/bin", "/bin"}) {
        if (!fs::exists(fs::path(place) / tool)) continue;
        fs::create_symlink(fs::path(place) / tool, folder_ / tool);
        break;
      }
    }
  }
  std::string path() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("with_driver lists the files beside it, and knows no other name") {
  const test::CommandResult list = with_driver({"--list"});
  CHECK(list.status == 0);
  std::string expected;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(drivers)) {
    if (entry.path().extension() == ".sh") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  for (const std::string& name : names) expected += name + "\n";
  CHECK(list.out == expected);
  CHECK(names.size() >= 4);

  for (const char* name : {"voodoo", "../drivers/lanes_4", ""}) {
    const test::CommandResult unknown = with_driver({name, "/bin/true"});
    test::check_failure(unknown, 2, {"unknown driver", "swiftshader"});
  }
  CHECK(with_driver({"lanes_4"}).status == 2);
}

TEST_CASE("run_whole refuses what it doesn't know before it runs anything") {
  const auto run_whole = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), drivers / "run_whole");
    return test::run_command(arguments);
  };
  const std::vector<std::vector<std::string>> wrong{{},
                                                    {"--turn", "3", "mesa"},
                                                    {"--turn", "3/0", "mesa"},
                                                    {"--turn"},
                                                    {"--for", "a", "mesa"},
                                                    {"--from", "-1", "mesa"},
                                                    {"--x", "mesa"}};
  for (const std::vector<std::string>& arguments : wrong)
    test::check_failure(run_whole(arguments), 2, {"usage", "--turn N/OF"});
  test::check_failure(run_whole({"lanes_4", "no_such_program"}), 2, {"no_such_program_tests"});
}

TEST_CASE("a driver that can't be had ends in 77 and says where it comes from") {
  const test::TemporaryFolder empty;
  const NoApt no_apt;
  const test::CommandResult result =
      with_driver({"swiftshader", "/bin/true"}, {{"PATH", no_apt.path()}, {"XDG_CACHE_HOME", empty.path()}});
  CHECK(result.status == 77);
  CHECK_THAT(result.err, ContainsSubstring("chromium-common") && ContainsSubstring("apt-get"));
  CHECK(empty.names().empty());
}

TEST_CASE("the newest SwiftShader of the cache folder is used, without asking anybody") {
  const test::TemporaryFolder cache;
  const NoApt no_apt;
  for (const char* version : {"9.0-1", "156.0-1", "99.5-2"}) {
    fs::create_directories(cache / "vitrine/swiftshader" / version);
    cache.file(std::string("vitrine/swiftshader/") + version + "/swiftshader_icd.json", "{}");
  }
  // Without a manifest it wasn't unpacked to its end.
  fs::create_directories(cache / "vitrine/swiftshader/157.0-1");
  const test::CommandResult result =
      with_driver({"swiftshader", "/bin/bash", "-c",
                   "echo $VK_DRIVER_FILES $VITRINE_CACHE_DIR $VITRINE_REQUIRE_DEVICE ${VITRINE_DEVICE-none}"},
                  {{"PATH", no_apt.path()},
                   {"XDG_CACHE_HOME", cache.path()},
                   {"VITRINE_DEVICE", "0"},
                   {"VITRINE_REQUIRE_DEVICE", ""}});
  INFO(result.err);
  CHECK(result.status == 0);
  CHECK(result.out == (cache / "vitrine/swiftshader/156.0-1/swiftshader_icd.json").string() + " " +
                          (cache / "vitrine/drivers/swiftshader").string() + " 1 none\n");
}

TEST_CASE("what tests lack is gathered by reason from CTest's log") {
  const test::TemporaryFolder folder;
  const std::string log = folder.file(
      "LastTest.log",
      "1/3 Test: ops: one\nx.cpp:1: SKIPPED:\nexplicitly with message:\n  left out: 5 x 7, f16: the device "
      "has "
      "no 16-\n  bit storage\n\nx.cpp:1: SKIPPED:\nexplicitly with messages:\n  left out: 9 x 7, f16: the "
      "device\n  has no 16-bit storage\n\n2/3 Test: ops: two\nall tests passed\n"
      "3/3 Test: vk: three, and more\nx.cpp:1: SKIPPED:\nexplicitly with message:\n  no timestamps\n\n");
  const test::CommandResult result = test::run_command({drivers / "why_skipped", log});
  CHECK(result.status == 0);
  CHECK(result.out ==
        "1 because no timestamps\n    vk: three, and more\n"
        "1 because the device has no 16-bit storage\n    ops: one\n");
}

TEST_CASE("what tests lack is gathered from the logs of test programs, several at once") {
  const test::TemporaryFolder folder;
  const std::string rule = std::string(79, '-') + "\n", dots = std::string(79, '.') + "\n",
                    reason = "x.cpp:1: SKIPPED:\nexplicitly with message:\n  no timestamps\n\n";
  const std::string one = folder.file(
      "ops.0", rule +
                   "a name that is so long that Catch2 breaks it where a word ends, as it would any\ntext\n" +
                   rule + "x.cpp:1\n" + dots + "\n" + reason +  //
                   rule +
                   "sweep: a name with a colon, which is as long as the other and goes on below what\n"
                   "       stands behind it\n  one of its sections\n    and one of that\n" +
                   rule + "x.cpp:1\n" + dots + "\n" + reason);
  const std::string two = folder.file("ops.1", rule + "another\n" + rule + "x.cpp:1\n" + dots + "\n" +
                                                   reason + "test cases: 1 | 1 skipped\n");
  const test::CommandResult result = test::run_command({drivers / "why_skipped", one, two});
  CHECK(result.status == 0);
  CHECK(result.out ==
        "3 because no timestamps\n"
        "    a name that is so long that Catch2 breaks it where a word ends, as it would any text\n"
        "    another\n"
        "    sweep: a name with a colon, which is as long as the other and goes on below what stands behind "
        "it\n");
}

}  // namespace vitrine
