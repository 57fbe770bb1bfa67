#include "runtime/vk/instance.h"

#include <volk.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <thread>

#include "runtime/graph/bound_dispatch.h"
#include "runtime/util/error.h"
#include "runtime/vk/device.h"
#include "runtime/vk/device_choice.h"
#include "runtime/vk/memory.h"
#include "tests/support/system.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

std::unique_ptr<Device> open_device(const std::shared_ptr<Instance>& instance) {
  const std::vector<PhysicalDevice> devices = instance->devices();
  std::vector<Capabilities> capabilities;
  for (const PhysicalDevice& device : devices) capabilities.push_back(device.capabilities);
  return std::make_unique<Device>(instance, devices[choose_device(capabilities, wanted_device("")).index()]);
}

// Binding a buffer of size 0 is an error that every validation finds.
void do_something_wrong(Device& device) {
  VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  if (device.vk().vkCreateBuffer(device.handle(), &info, nullptr, &buffer) == VK_SUCCESS) {
    device.vk().vkDestroyBuffer(device.handle(), buffer, nullptr);
  }
}

void need_layers() {
  if (test::usual_validation() == Validation::off) SKIP("validation layers aren't handed on here");
}

}  // namespace

TEST_CASE("validation reports a mistake to the sink, in both modes") {
  need_layers();
  test::test_device();  // skips without a device
  for (const Validation mode : {Validation::sync, Validation::gpu}) {
    std::vector<ValidationMessage> messages;
    {
      auto instance = std::make_shared<Instance>(
          InstanceOptions{.validation = mode, .sink = [&](const ValidationMessage& message) {
                            if (!message.about_setup()) messages.push_back(message);
                          }});
      CHECK(instance->validation() == mode);
      const auto device = open_device(instance);
      // The shaders' checks report through buffer addresses. Where there are none the layer says that it
      // can't.
      if (mode == Validation::gpu && !device->capabilities().supports(Need::addresses)) {
        REQUIRE(messages.size() == 1);
        CHECK_THAT(messages[0].text, ContainsSubstring("requires bufferDeviceAddress"));
        messages.clear();
      }
      CHECK(messages.empty());
      do_something_wrong(*device);
      REQUIRE(messages.size() == 1);
      CHECK(messages[0].severity == Severity::error);
      CHECK_THAT(messages[0].id, ContainsSubstring("VUID-VkBufferCreateInfo-size-00912"));
    }
    // Destroying them is no mistake.
    CHECK(messages.size() == 1);
  }
}

TEST_CASE("every repetition of a mistake is reported") {
  need_layers();
  test::test_device();
  size_t count = 0;
  auto instance = std::make_shared<Instance>(
      InstanceOptions{.validation = Validation::sync, .sink = [&](const ValidationMessage&) { ++count; }});
  const auto device = open_device(instance);
  for (int i = 0; i < 25; ++i) do_something_wrong(*device);
  CHECK(count == 25);
}

TEST_CASE("a missing barrier is reported, unless the layer is too old to know") {
  need_layers();
  test::test_device();
  std::vector<ValidationMessage> messages;
  auto instance = std::make_shared<Instance>(
      InstanceOptions{.validation = Validation::sync, .sink = [&](const ValidationMessage& message) {
                        if (!message.about_setup()) messages.push_back(message);
                      }});
  const auto device = open_device(instance);
  const Buffer buffer(*device, BufferKind::device, 4096, "filled twice");
  run_once(*device, [&](VkCommandBuffer commands) {
    for (const uint32_t word : {1u, 2u})
      device->vk().vkCmdFillBuffer(commands, buffer.handle(), 0, VK_WHOLE_SIZE, word);
  });
  CHECK(messages.size() == (instance->checks_synchronization() ? 1 : 0));
  for (const ValidationMessage& message : messages)
    CHECK_THAT(message.id, ContainsSubstring("SYNC-HAZARD-WRITE-AFTER-WRITE"));
}

TEST_CASE("an instance without validation says nothing") {
  test::test_device();
  size_t count = 0;
  auto instance = std::make_shared<Instance>(
      InstanceOptions{.validation = Validation::off, .sink = [&](const ValidationMessage&) { ++count; }});
  const auto device = open_device(instance);
  device->set_name(VK_OBJECT_TYPE_DEVICE, device->handle(), "named");
  CHECK(count == 0);
}

TEST_CASE("several instances and devices live and die independently") {
  need_layers();
  test::test_device();
  const auto silent = [](const ValidationMessage& message) {
    if (!message.about_setup()) FAIL(message.text);
  };
  auto first = std::make_shared<Instance>(InstanceOptions{.validation = Validation::sync, .sink = silent});
  auto first_device = open_device(first);
  auto second = std::make_shared<Instance>(InstanceOptions{.validation = Validation::off, .sink = silent});
  auto second_device = open_device(second);
  CHECK(&first_device->vk() != &second_device->vk());
  // The device keeps its instance alive.
  first.reset();
  first_device->wait_idle();
  first_device.reset();
  second_device->wait_idle();

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      auto instance = std::make_shared<Instance>(InstanceOptions{.validation = Validation::off});
      open_device(instance)->wait_idle();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The loader walks all instances' devices to name an object, and crashed where another thread listed devices.
TEST_CASE("objects are named and commands labelled while other threads list and open devices") {
  const auto instance = std::make_shared<Instance>(InstanceOptions{.validation = Validation::off});
  const auto device = open_device(instance);
  std::atomic<int> at_work = 3;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&at_work, i] {
      for (int round = 0; round < 12; ++round) {
        const auto own = std::make_shared<Instance>(InstanceOptions{.validation = Validation::off});
        if ((round + i) % 3 == 0) {
          open_device(own)->wait_idle();
        } else {
          static_cast<void>(own->devices());
        }
      }
      --at_work;
    });
  }
  while (at_work > 0) {
    const Buffer buffer(*device, BufferKind::device, 256, "named");
    CHECK(buffer.bytes() == 256);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("VITRINE_VALIDATE is read strictly") {
  test::Variables variables;
  const auto with = [&](const char* value) {
    variables.set("VITRINE_VALIDATE", value);
    return validation_from_environment();
  };
  CHECK(with("") == Validation::off);
  CHECK(with("0") == Validation::off);
  CHECK(with("1") == Validation::sync);
  CHECK(with("sync") == Validation::sync);
  CHECK(with("gpu") == Validation::gpu);
  CHECK_THROWS_AS(with("yes"), Error);
  variables.set("VITRINE_VALIDATE", std::nullopt);
  CHECK(validation_from_environment() == Validation::off);
}

TEST_CASE("a snapshot holds what the device says of itself") {
  const Capabilities& device = test::test_device().device->capabilities();
  CHECK_FALSE(device.name.empty());
  CHECK_FALSE(device.driver_name.empty());
  CHECK(device.api_version >= VK_API_VERSION_1_3);
  CHECK(device.has_compute_queue);
  CHECK(device.min_subgroup_size <= device.subgroup_size);
  CHECK(device.subgroup_size <= device.max_subgroup_size);
  CHECK(device.max_push_bytes >= 128);
  CHECK(device.max_shared_bytes >= 16384);
  CHECK(device.max_buffer_bytes > 0);
  CHECK(device.max_allocation > 0);
  CHECK_FALSE(device.heaps.empty());
  for (const MemoryType& type : device.memory_types) CHECK(type.heap < device.heaps.size());
  CHECK(device.supports(Need::coopmat) == device.coopmat("f16", "f16", "f32").has_value());
  test::require_no_validation_messages();
}

}  // namespace vitrine
