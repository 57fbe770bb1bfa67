#include "runtime/vk/device_choice.h"

#include <vulkan/vulkan_core.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/util/error.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/system.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

Capabilities named(std::string name, DeviceType type) {
  Capabilities device = test::plain_gpu();
  device.name = std::move(name);
  device.type = type;
  return device;
}

}  // namespace

TEST_CASE("the best kind of device is chosen, wherever it is in the list") {
  const std::vector<Capabilities> devices = {
      named("lavapipe", DeviceType::cpu), named("virtio", DeviceType::virtual_gpu),
      named("iGPU", DeviceType::integrated), named("card", DeviceType::discrete),
      named("mystery", DeviceType::other)};
  // Taking away the best one each time leaves the next kind in rank.
  std::vector<Capabilities> left = devices;
  for (const char* expected : {"card", "iGPU", "virtio", "lavapipe", "mystery"}) {
    const DeviceChoice choice = choose_device(left, "");
    REQUIRE(choice.chosen);
    CHECK(left[*choice.chosen].name == expected);
    CHECK(choice.reasons.size() == left.size());
    left.erase(left.begin() + static_cast<ptrdiff_t>(*choice.chosen));
  }
}

TEST_CASE("among equals the first device is chosen and the other's sentence says so") {
  const std::vector<Capabilities> devices = {named("a", DeviceType::discrete),
                                             named("b", DeviceType::discrete)};
  const DeviceChoice choice = choose_device(devices, "");
  CHECK(choice.index() == 0);
  CHECK_THAT(choice.reasons[0], ContainsSubstring("chosen: ") && ContainsSubstring("discrete"));
  CHECK_THAT(choice.reasons[1], ContainsSubstring("device 0") && ContainsSubstring("comes first"));
}

TEST_CASE("a device can be asked for by index or by part of its name") {
  const std::vector<Capabilities> devices = {named("NVIDIA GeForce RTX 3090", DeviceType::discrete),
                                             named("AMD Radeon RX 7900 XTX", DeviceType::discrete),
                                             named("llvmpipe (LLVM 19)", DeviceType::cpu)};
  CHECK(choose_device(devices, "2").index() == 2);
  CHECK(choose_device(devices, "radeon").index() == 1);
  CHECK(choose_device(devices, "LLVM").index() == 2);
  // Digits that are no index are part of a name.
  CHECK(choose_device(devices, "3090").index() == 0);
  CHECK(choose_device(devices, "7900").index() == 1);
  // Several names match: the best kind of those.
  CHECK(choose_device(devices, "l").index() == 2);
  CHECK(choose_device(devices, "r").index() == 0);
  CHECK_THAT(choose_device(devices, "radeon").reasons[0], ContainsSubstring("'radeon' was asked for"));
}

TEST_CASE("a device that lacks what is required is never chosen, and each lack is named") {
  struct Row {
    void (*breaks)(Capabilities&);
    const char* says;
  };
  const std::vector<Row> rows = {
      {[](Capabilities& d) { d.api_version = VK_MAKE_API_VERSION(0, 1, 2, 200); }, "Vulkan 1.3 (it has 1.2)"},
      {[](Capabilities& d) { d.has_compute_queue = false; }, "a queue that computes"},
      {[](Capabilities& d) { d.synchronization2 = false; }, "synchronization2"},
      {[](Capabilities& d) { d.timeline_semaphore = false; }, "timeline semaphores"},
      {[](Capabilities& d) { d.maintenance4 = false; }, "maintenance4"},
      {[](Capabilities& d) { d.max_push_bytes = 127; }, "128 bytes of push constants (it has 127)"},
      {[](Capabilities& d) { d.max_storage_buffers = 4; }, "8 storage buffers a shader (it has 4)"}};
  CHECK_FALSE(why_unusable(test::plain_gpu()));
  for (const Row& row : rows) {
    std::vector<Capabilities> devices = {named("broken", DeviceType::discrete),
                                         named("cpu", DeviceType::cpu)};
    row.breaks(devices[0]);
    const DeviceChoice choice = choose_device(devices, "");
    CHECK(choice.index() == 1);
    CHECK_THAT(choice.reasons[0], ContainsSubstring("can't be used") && ContainsSubstring(row.says));

    const DeviceChoice asked = choose_device(devices, "broken");
    CHECK_FALSE(asked.chosen);
    CHECK_THAT(asked.failure, ContainsSubstring("'broken'") && ContainsSubstring(row.says));
  }
}

TEST_CASE("no device and no match end in exit status 3 with a sentence") {
  try {
    choose_device({}, "").index();
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::no_device);
  }
  const std::vector<Capabilities> devices = {named("card", DeviceType::discrete)};
  for (const char* wanted : {"1", "99999999999999999999", "-1", "voodoo"}) {
    const DeviceChoice choice = choose_device(devices, wanted);
    CHECK_FALSE(choice.chosen);
    CHECK_THAT(choice.failure, ContainsSubstring(wanted) && ContainsSubstring("0 'card'"));
    CHECK_THAT(choice.reasons[0], ContainsSubstring("not chosen"));
  }
}

TEST_CASE("the option goes before VITRINE_DEVICE") {
  test::Variables variables({{"VITRINE_DEVICE", "from the variable"}});
  CHECK(wanted_device("from the option") == "from the option");
  CHECK(wanted_device("") == "from the variable");
  variables.set("VITRINE_DEVICE", std::nullopt);
  CHECK(wanted_device("").empty());
}

}  // namespace vitrine
