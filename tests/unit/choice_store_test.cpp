#include "runtime/tune/choice_store.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/util/error.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

Capabilities device_numbered(uint8_t number, uint32_t driver = 7) {
  Capabilities device = test::plain_gpu();
  device.device_uuid[3] = number;
  device.driver_version = driver;
  return device;
}

const KernelChoices some{
    .tuned = {{"matmul(f32[2, 3])", "tiled:64x64x16/4x4"}, {"softmax(f32[1])", "simple"}},
    .certificates = {{"matmul=tiled a.f32#1", ""}, {"matmul=other b.f32#2", "wrong \"x\""}}};

std::vector<std::string> warnings;
void warn(const std::string& sentence) { warnings.push_back(sentence); }

}  // namespace

TEST_CASE("kernel choices: what is stored is found again, by the same device and driver only") {
  const test::TemporaryFolder folder;
  warnings.clear();
  CHECK(load_kernel_choices(device_numbered(1), warn, folder.path()) == KernelChoices{});
  const std::filesystem::path path = add_kernel_choices(device_numbered(1), some, folder.path());
  CHECK(load_kernel_choices(device_numbered(1), warn, folder.path()) == some);
  CHECK(load_kernel_choices(device_numbered(2), warn, folder.path()) == KernelChoices{});
  CHECK(load_kernel_choices(device_numbered(1, 8), warn, folder.path()) == KernelChoices{});
  CHECK(load_kernel_choices(device_numbered(1), warn, std::nullopt) == KernelChoices{});
  CHECK(warnings.empty());
  CHECK(folder.names() == std::vector<std::string>{path.filename().string()});
}

TEST_CASE("kernel choices: what is new is added and goes before what is old") {
  const test::TemporaryFolder folder;
  add_kernel_choices(device_numbered(1), some, folder.path() / "made" / "on the way");
  add_kernel_choices(
      device_numbered(1),
      {.tuned = {{"softmax(f32[1])", "lanes"}}, .certificates = {{"matmul=tiled a.f32#1", "lost"}}},
      folder.path() / "made" / "on the way");
  const KernelChoices now =
      load_kernel_choices(device_numbered(1), warn, folder.path() / "made" / "on the way");
  CHECK(now.tuned.size() == 2);
  CHECK(now.tuned.at("softmax(f32[1])") == "lanes");
  CHECK(now.certificates.at("matmul=tiled a.f32#1") == "lost");
  CHECK_THROWS_AS(add_kernel_choices(device_numbered(1), some, std::nullopt), Error);
}

TEST_CASE("kernel choices: a broken or foreign file is ignored with one sentence") {
  const test::TemporaryFolder folder;
  const Capabilities device = device_numbered(1);
  const std::string name = kernel_choices_name(device);
  const std::string good = kernel_choices_to_json(device, some);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string(), good.substr(0, good.size() / 2), std::string("[1]"), std::string("{}"),
        with("\"simple\"", "3"), with("\"tuned\"", "\"tunes\""), with("\"version\": 1", "\"version\": 2"),
        kernel_choices_to_json(device_numbered(2), some),
        kernel_choices_to_json(device_numbered(1, 8), some)}) {
    INFO(text);
    folder.file(name, text);
    warnings.clear();
    CHECK(load_kernel_choices(device, warn, folder.path()) == KernelChoices{});
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], ContainsSubstring(name) && ContainsSubstring("ignored"));
    CHECK(warnings[0].find('\n') == std::string::npos);
  }
  // It doesn't stand in the way of a good one.
  add_kernel_choices(device, some, folder.path());
  CHECK(load_kernel_choices(device, warn, folder.path()) == some);
}

}  // namespace vitrine
