#include "runtime/vk/capabilities.h"

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>

#include "runtime/graph/op.h"
#include "runtime/ops/explain/principal_colors.h"
#include "runtime/vk/device_facts.h"
#include "runtime/vk/facts/quirks.h"
#include "runtime/vk/facts/snapshot.h"
#include "runtime/vk/memory.h"
#include "tests/support/made_up/made_up_device.h"

namespace vitrine {

TEST_CASE("needs are written by name") {
  CHECK(to_string(Need::none) == "none");
  CHECK(to_string(Need::storage16 | Need::coopmat) == "storage16, coopmat");
  CHECK(to_string(Need::fp16 | Need::int8 | Need::int64 | Need::addresses | Need::coopmat2 |
                  Need::subgroup_control) == "fp16, int8, int64, addresses, coopmat2, subgroup_control");
}

TEST_CASE("memory is unified when the host reaches the largest local heap") {
  CHECK(test::software_driver().unified_memory());
  CHECK_FALSE(test::plain_gpu().unified_memory());

  // The 256 MiB window of a card without resizable BAR is too small to count.
  Capabilities window = test::plain_gpu();
  window.heaps.push_back({uint64_t{256} << 20, true});
  window.memory_types.push_back(
      {.heap = 2, .device_local = true, .host_visible = true, .host_coherent = true});
  CHECK_FALSE(window.unified_memory());

  // With it, the whole of the card's memory is written by the host.
  Capabilities resizable = test::plain_gpu();
  resizable.memory_types.push_back(
      {.heap = 0, .device_local = true, .host_visible = true, .host_coherent = true});
  CHECK(resizable.unified_memory());

  // Memory that needs flushes is left to staging.
  resizable.memory_types.back().host_coherent = false;
  CHECK_FALSE(resizable.unified_memory());
}

TEST_CASE("what the host reads lies in its cache where local memory is cached, coherent or not") {
  CHECK(test::software_driver().unified_cached_memory());
  CHECK_FALSE(test::plain_gpu().unified_cached_memory());
  // As phones have it: what is coherent isn't cached, and what is cached isn't coherent.
  Capabilities phone = test::plain_gpu();
  phone.heaps = {{uint64_t{4} << 30, true}};
  phone.memory_types = {{.device_local = true, .host_visible = true, .host_coherent = true}};
  CHECK(phone.unified_memory());
  CHECK_FALSE(phone.unified_cached_memory());
  phone.memory_types.push_back({.device_local = true, .host_visible = true, .host_cached = true});
  CHECK(phone.unified_memory());
  CHECK(phone.unified_cached_memory());
}

TEST_CASE("memory of the device has to be the device's, and memory to be read has to be cached") {
  const auto has = [](BufferKind kind, VkMemoryPropertyFlags flag) {
    return (required_memory(kind) & flag) != 0;
  };
  CHECK(has(BufferKind::device, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT));
  CHECK(has(BufferKind::direct, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT));
  CHECK(has(BufferKind::direct_read, VK_MEMORY_PROPERTY_HOST_CACHED_BIT));
  CHECK_FALSE(has(BufferKind::direct_read, VK_MEMORY_PROPERTY_HOST_COHERENT_BIT));
}

TEST_CASE("cooperative shapes are found by their component types") {
  const Capabilities device = test::rich_gpu();
  const auto shape = device.coopmat("f16", "f16", "f32");
  REQUIRE(shape);
  CHECK(shape->result == "f32");
  CHECK(shape->m == 16);
  CHECK_FALSE(device.coopmat("f16", "f32", "f32"));
  CHECK_FALSE(test::plain_gpu().coopmat("f16", "f16", "f32"));
}

TEST_CASE("the queue family computes, and tells the time where one does") {
  const VkQueueFamilyProperties graphics{
      .queueFlags = VK_QUEUE_GRAPHICS_BIT, .queueCount = 1, .timestampValidBits = 64};
  const VkQueueFamilyProperties silent{.queueFlags = VK_QUEUE_COMPUTE_BIT, .queueCount = 1};
  const VkQueueFamilyProperties timed{
      .queueFlags = VK_QUEUE_COMPUTE_BIT, .queueCount = 1, .timestampValidBits = 36};
  const VkQueueFamilyProperties empty{
      .queueFlags = VK_QUEUE_COMPUTE_BIT, .queueCount = 0, .timestampValidBits = 36};
  CHECK_FALSE(choose_queue_family({}));
  CHECK_FALSE(choose_queue_family(std::array{graphics, empty}));
  CHECK(choose_queue_family(std::array{graphics, silent}) == 1u);
  CHECK(choose_queue_family(std::array{graphics, silent, timed}) == 2u);
}

TEST_CASE("copies go to a queue that does nothing else, or to one that nobody needs") {
  const VkQueueFamilyProperties all{
      .queueFlags = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, .queueCount = 1};
  const VkQueueFamilyProperties three{.queueFlags = all.queueFlags, .queueCount = 3};
  const VkQueueFamilyProperties computes{.queueFlags = VK_QUEUE_COMPUTE_BIT, .queueCount = 4};
  const VkQueueFamilyProperties copies{.queueFlags = VK_QUEUE_TRANSFER_BIT | VK_QUEUE_SPARSE_BINDING_BIT,
                                       .queueCount = 2};
  const VkQueueFamilyProperties video{.queueFlags = VK_QUEUE_TRANSFER_BIT | VK_QUEUE_VIDEO_DECODE_BIT_KHR,
                                      .queueCount = 1};
  const VkQueueFamilyProperties none{.queueFlags = VK_QUEUE_TRANSFER_BIT, .queueCount = 0};
  CHECK_FALSE(choose_copy_queue(std::array{all}, 0, 1));
  CHECK_FALSE(choose_copy_queue(std::array{all, video, none}, 0, 1));
  CHECK(choose_copy_queue(std::array{three}, 0, 1) == QueuePlace{0, 1});
  CHECK(choose_copy_queue(std::array{three}, 0, 2) == QueuePlace{0, 2});
  CHECK_FALSE(choose_copy_queue(std::array{three}, 0, 3));
  CHECK(choose_copy_queue(std::array{three, computes}, 0, 1) == QueuePlace{1, 0});
  CHECK(choose_copy_queue(std::array{three, video, computes, copies}, 0, 1) == QueuePlace{3, 0});
  CHECK(choose_copy_queue(std::array{copies, all}, 1, 1) == QueuePlace{0, 0});
  // One that draws is no better than the family's own.
  CHECK(choose_copy_queue(std::array{all, three}, 1, 1) == QueuePlace{1, 1});
}

TEST_CASE("a quirk applies to its driver and versions only") {
  const Quirk quirk{.name = "half-broken",
                    .driver_id = 7,
                    .first_version = 10,
                    .last_version = 20,
                    .effect = [](Capabilities& device) { device.timestamp_valid_bits = 0; },
                    .why = "a test"};
  for (const auto& [driver, version, hit] :
       {std::tuple{7u, 9u, false}, {7u, 10u, true}, {7u, 20u, true}, {7u, 21u, false}, {8u, 15u, false}}) {
    Capabilities device = test::plain_gpu();
    device.driver_id = driver;
    device.driver_version = version;
    const Capabilities out = apply_quirks(device, std::array{quirk});
    CAPTURE(driver, version);
    CHECK(out.timestamp_valid_bits == (hit ? 0u : 64u));
    CHECK(out.quirks == (hit ? std::vector<std::string>{"half-broken"} : std::vector<std::string>{}));
  }
}

TEST_CASE("the software driver keeps cooperative matrices with subgroups of 8 only") {
  const Capabilities narrow = apply_quirks(test::software_driver());
  CHECK(narrow.supports(Need::coopmat | Need::coopmat2));
  CHECK(narrow.quirks.empty());

  Capabilities wide = test::software_driver();
  wide.subgroup_size = wide.min_subgroup_size = wide.max_subgroup_size = 16;
  const Capabilities fixed = apply_quirks(wide);
  CHECK_FALSE(fixed.supports(Need::coopmat));
  CHECK_FALSE(fixed.supports(Need::coopmat2));
  CHECK(fixed.supports(Need::fp16 | Need::subgroup_control));
  CHECK(fixed.cooperative_shapes.empty());
  CHECK(fixed.quirks ==
        std::vector<std::string>{"software-driver-wide-coopmat", "software-driver-wide-int64"});
}

TEST_CASE("of the software driver's versions, those from 26.1 on load no 64-bit words in subgroups of 16") {
  for (const auto& [lanes, version, keeps] : {std::tuple{4u, VK_MAKE_API_VERSION(0, 26, 1, 6), true},
                                              {8u, VK_MAKE_API_VERSION(0, 26, 1, 6), true},
                                              {16u, VK_MAKE_API_VERSION(0, 26, 1, 6), false},
                                              {16u, VK_MAKE_API_VERSION(0, 26, 1, 0), false},
                                              {16u, VK_MAKE_API_VERSION(0, 25, 0, 7), true}}) {
    CAPTURE(lanes, version);
    Capabilities device = test::software_driver();
    device.driver_version = version;
    device.subgroup_size = device.min_subgroup_size = device.max_subgroup_size = lanes;
    const Capabilities known = apply_quirks(device);
    CHECK(known.supports(Need::int64) == keeps);
    CHECK(known.supports(Need::storage16 | Need::addresses));
  }
}

TEST_CASE("of the software driver's versions, those before 26.1 gather in loops") {
  for (const auto& [major, minor, gathers] :
       {std::tuple{22u, 3u, true}, {25u, 0u, true}, {26u, 0u, true}, {26u, 1u, false}, {27u, 0u, false}}) {
    CAPTURE(major, minor);
    Capabilities device = test::software_driver();
    device.driver_version = VK_MAKE_API_VERSION(0, major, minor, 7);
    CHECK(apply_quirks(device).loops_gather == gathers);
    device.driver_id = VK_DRIVER_ID_MESA_RADV;
    CHECK_FALSE(apply_quirks(device).loops_gather);
  }
}

TEST_CASE(
    "of the software driver's versions, those before 25.0 end long loops, which are made shorter there") {
  for (const auto& [info, ends] : {std::pair{"Mesa 24.0.5-1ubuntu1 (LLVM 17.0.6)", true},
                                   {"Mesa 22.3.6", true},
                                   {"Mesa 24.3.4 (LLVM 19.1.7)", true},
                                   {"Mesa 25.0.7-2+deb13u1 (LLVM 19.1.7)", false},
                                   {"Mesa 26.2 (git-0123)", false},
                                   {"", true}}) {
    CAPTURE(info);
    Capabilities device = test::software_driver();
    device.driver_version = 1;  // as it says itself
    device.driver_info = info;
    device = apply_quirks(device);
    CHECK((device.max_loop_rounds != 0) == ends);
    for (const auto& [patches, width, dispatches] : {std::tuple<uint64_t, uint64_t, size_t>{16, 64, 4},
                                                     {196, 192, 4},
                                                     {1369, 1536, 16},
                                                     {2900, 3000, 0}}) {
      CAPTURE(patches, width);
      Graph graph;
      principal_colors(graph, "y", graph.input("x", {1, patches, width}), 0, patches);
      const LowerContext context(graph, graph.nodes().back(), device);
      const KernelDef& kernel = op_principal_colors.kernels[0];
      const std::optional<std::string> refusal = kernel.refuses(context);
      CHECK(refusal.has_value() == (ends && dispatches == 0));
      if (refusal) {
        CHECK(refusal->find("65535") != refusal->npos);
      } else {
        // And one that colors.
        CHECK(kernel.lower(context).dispatches.size() == (ends ? dispatches : 4) + 1);
      }
    }
  }
}

TEST_CASE("SwiftShader alone is given kernels whose constants are fixed") {
  Capabilities device = test::software_driver();
  CHECK_FALSE(apply_quirks(device).ignores_specialization);
  device.driver_id = VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
  CHECK(apply_quirks(device).ignores_specialization);
}

TEST_CASE("a newer driver is advised where one is known to be faster") {
  const auto advice_of = [](uint32_t driver, uint32_t version) {
    Capabilities device = test::software_driver();
    device.driver_id = driver;
    device.driver_version = version;
    return apply_quirks(device).advice;
  };
  for (const uint32_t version : {VK_MAKE_API_VERSION(0, 22, 3, 6), VK_MAKE_API_VERSION(0, 25, 0, 7),
                                 VK_MAKE_API_VERSION(0, 26, 0, 99)}) {
    CAPTURE(version);
    CHECK(advice_of(VK_DRIVER_ID_MESA_LLVMPIPE, version) ==
          std::vector<std::string>{
              "a newer driver is known to be faster, up to twice as fast: Mesa 26.1 or later"});
    CHECK(advice_of(VK_DRIVER_ID_MESA_RADV, version).empty());
    CHECK(advice_of(VK_DRIVER_ID_GOOGLE_SWIFTSHADER, version).empty());
  }
  CHECK(advice_of(VK_DRIVER_ID_MESA_LLVMPIPE, VK_MAKE_API_VERSION(0, 26, 1, 0)).empty());
  CHECK(advice_of(VK_DRIVER_ID_MESA_LLVMPIPE, VK_MAKE_API_VERSION(0, 26, 1, 6)).empty());

  // The one that gathers in loops is the one that is advised against, also for people to read.
  Capabilities old = test::software_driver();
  old.driver_version = VK_MAKE_API_VERSION(0, 25, 0, 7);
  old = apply_quirks(old);
  CHECK(old.loops_gather);
  const std::vector<DeviceFact> facts = device_facts(old);
  CHECK(std::ranges::count(facts, "advice", &DeviceFact::name) == 1);
  const std::string heading = device_heading(old);
  CHECK(std::ranges::count(heading, '\n') == 2);
  CHECK(heading.ends_with("\n" + old.advice.at(0) + "\n"));
  CHECK(std::ranges::count(device_facts(test::software_driver()), "advice", &DeviceFact::name) == 0);
}

TEST_CASE("a device and its driver are one line, and a software driver is named once") {
  Capabilities device = test::software_driver();
  device.name = "llvmpipe (LLVM 19.1.7, 256 bits)";
  device.driver_name = "llvmpipe";
  device.driver_info = "Mesa 25.0.7 (LLVM 19.1.7)";
  CHECK(device_and_driver(device) == "llvmpipe (LLVM 19.1.7, 256 bits), Mesa 25.0.7 (LLVM 19.1.7)");
  device = test::plain_gpu();
  device.name = "NVIDIA H100";
  device.driver_name = "NVIDIA";
  device.driver_info = "570.86";
  CHECK(device_and_driver(device) == "NVIDIA H100, NVIDIA 570.86");

  // Some say nothing but their name.
  device.name = "SwiftShader Device (Subzero)";
  device.driver_name = "SwiftShader driver";
  device.driver_info = "";
  CHECK(device_and_driver(device) == "SwiftShader Device (Subzero), SwiftShader driver");
  const std::vector<DeviceFact> facts = device_facts(device);
  const auto driver = std::ranges::find(facts, "driver", &DeviceFact::name);
  REQUIRE(driver != facts.end());
  CHECK(driver->value == "SwiftShader driver, Vulkan 1.3.0");
}

TEST_CASE("AMD's own drivers lose emulated cooperative matrices, Mesa's keeps its own") {
  for (const uint32_t driver : {VK_DRIVER_ID_AMD_PROPRIETARY, VK_DRIVER_ID_AMD_OPEN_SOURCE}) {
    Capabilities rdna2 = test::rich_gpu();
    rdna2.driver_id = driver;
    rdna2.mixed_dot_product = false;
    CHECK_FALSE(apply_quirks(rdna2).supports(Need::coopmat));
    Capabilities rdna3 = rdna2;
    rdna3.mixed_dot_product = true;
    CHECK(apply_quirks(rdna3).supports(Need::coopmat));
  }
  Capabilities radv = test::rich_gpu();
  radv.driver_id = VK_DRIVER_ID_MESA_RADV;
  radv.mixed_dot_product = false;
  CHECK(apply_quirks(radv).supports(Need::coopmat));
}

TEST_CASE("every quirk has a name of its own and says why") {
  std::vector<std::string_view> names;
  for (const Quirk& quirk : all_quirks()) {
    CHECK_FALSE(quirk.name.empty());
    CHECK(quirk.why.size() > 20);
    CHECK(quirk.effect != nullptr);
    CHECK(std::ranges::find(names, quirk.name) == names.end());
    names.push_back(quirk.name);
  }
}

}  // namespace vitrine
