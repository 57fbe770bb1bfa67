// vitrine inspect --device-profile as a user calls it: no Vulkan device is looked for.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/tune/device_profile.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

const std::string cards = VITRINE_TEST_DATA "/../devices/";

// On a machine without any driver.
test::CommandResult vitrine_alone(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VITRINE_PROGRAM);
  return test::run_command(arguments, {{"VK_DRIVER_FILES", "/nonexistent"}, {"VITRINE_DEVICE", ""}});
}

Json estimate_of(const std::string& card, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {"inspect", "vit_base_patch16_224", "--json", "--device-profile", cards + card + ".json"});
  const test::CommandResult result = vitrine_alone(arguments);
  INFO(result.err);
  REQUIRE(result.status == 0);
  return Json::parse(result.out);
}

}  // namespace

TEST_CASE("inspect --device-profile says what a card would run, and about how long") {
  const Json line = estimate_of("rtx4090", {"--dtype", "f16", "--batch", "8"});
  CHECK(line["device"] == "NVIDIA GeForce RTX 4090");
  double seconds = 0;
  size_t products = 0;
  for (const Json& dispatch : line["dispatches"]) {
    INFO(dispatch.dump());
    CHECK(dispatch["estimated_seconds"].get<double>() > 0);
    CHECK(dispatch["threads"].get<uint32_t>() > 0);
    CHECK(dispatch["bound_by"].is_string());
    seconds += dispatch["estimated_seconds"].get<double>();
    if (dispatch["kernel"] != "coopmat") continue;
    ++products;
    CHECK(dispatch["registers"].get<double>() > 0);
    // What adds up slices of K has no tile of its own.
    if (dispatch["shader"] != "matmul_slices.f32") CHECK(dispatch["shared_bytes"].get<uint64_t>() > 0);
    CHECK(dispatch["tile"] != "-");
  }
  CHECK(products > 12);
  CHECK_THAT(line["estimated_seconds"].get<double>(), Catch::Matchers::WithinRel(seconds, 1e-9));
  // 281 GFLOP: no card of the list does that in a tenth of a millisecond, and this one not in a tenth of a
  // second.
  CHECK(seconds > 1e-4);
  CHECK(seconds < 1e-1);
  // A larger card takes less, a larger batch and f32 more.
  CHECK(estimate_of("rtx5090", {"--dtype", "f16", "--batch", "8"})["estimated_seconds"] < seconds);
  CHECK(estimate_of("rtx4090", {"--dtype", "f16", "--batch", "16"})["estimated_seconds"] > seconds);
  CHECK(estimate_of("rtx4090", {"--dtype", "f32", "--batch", "8"})["estimated_seconds"] > seconds);
}

TEST_CASE("inspect --device-profile prints a line for what repeats in every block, and the sum") {
  for (const auto& card : std::filesystem::directory_iterator(cards)) {
    INFO(card.path());
    const test::CommandResult text = vitrine_alone(
        {"inspect", "vit_tiny_patch16_224", "--dtype", "f16", "--device-profile", card.path().string()});
    INFO(text.err);
    CHECK(text.status == 0);
    CHECK_THAT(text.out, ContainsSubstring("  12 blocks.*.attn.qkv") && ContainsSubstring("never compared") &&
                             ContainsSubstring("about ") && !ContainsSubstring("blocks.3."));
  }
}

TEST_CASE("inspect --device-profile refuses what is no profile, and a second device") {
  const test::TemporaryFolder folder;
  const auto inspect = [&](const std::string& file, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"inspect", "vit_tiny_patch16_224", "--device-profile", file});
    const test::CommandResult result = vitrine_alone(more);
    CHECK(std::ranges::count(result.err, '\n') == 1);
    return result;
  };
  const test::CommandResult none = inspect(folder / "none.json");
  CHECK(none.status == 4);
  CHECK_THAT(none.err, ContainsSubstring("none.json"));
  folder.file("config.json", "{\"model\": {}}");
  const test::CommandResult other = inspect(folder / "config.json");
  CHECK(other.status == 4);
  CHECK_THAT(other.err, ContainsSubstring("found no \"format\""));
  CHECK(inspect(cards + "rtx4090.json", {"--device", "0"}).status == 2);
  Capabilities without_half = read_device_profile(cards + "rtx4090.json");
  without_half.has = Need::none;
  const std::string file = folder.file("no_half.json", device_profile_to_json(without_half));
  const test::CommandResult half =
      vitrine_alone({"inspect", "vit_tiny_patch16_224", "--dtype", "f16", "--device-profile", file});
  CHECK(half.status == 2);
  CHECK_THAT(half.err, ContainsSubstring("no 16-bit storage"));
}

TEST_CASE("devices --profile writes what inspect --device-profile reads, and plans the same") {
  test::test_device();
  const test::TemporaryFolder folder;
  const auto vitrine = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), VITRINE_PROGRAM);
    return test::run_command(arguments, {{"VITRINE_CACHE_DIR", folder / "cache"}});
  };
  const test::CommandResult profile = vitrine({"devices", "--profile"});
  CHECK(profile.status == 0);
  const std::string file = folder.file("here.json", profile.out);
  const test::CommandResult here = vitrine({"inspect", "vit_tiny_patch16_224", "--json"});
  const test::CommandResult there =
      vitrine_alone({"inspect", "vit_tiny_patch16_224", "--json", "--device-profile", file});
  REQUIRE(here.status == 0);
  REQUIRE(there.status == 0);
  const Json of_here = Json::parse(here.out), of_there = Json::parse(there.out);
  REQUIRE(of_here["dispatches"].size() == of_there["dispatches"].size());
  for (size_t i = 0; i < of_here["dispatches"].size(); ++i) {
    for (const char* member : {"node", "kernel", "choice", "shader", "groups"})
      CHECK(of_here["dispatches"][i][member] == of_there["dispatches"][i][member]);
  }
}

}  // namespace vitrine
