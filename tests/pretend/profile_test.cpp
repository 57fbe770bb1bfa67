// What the profiles say, and that devices say it.
#include "tests/pretend/layer/profile.h"

#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "runtime/util/error.h"
#include "runtime/vk/device_choice.h"
#include "runtime/vk/facts/snapshot.h"
#include "tests/pretend/pretend_device.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string refusal_of(const std::string& text) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "profile.json";
  std::ofstream(path) << text;
  try {
    pretend::read_profile(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

constexpr const char* rest =
    R"("heaps": [{"MiB": 1, "device_local": true}],
       "memory_types": [{"heap": 0, "is": ["device_local", "host_visible", "host_coherent"]}],
       "queue_families": [{"can": ["compute"], "timestamp_bits": 0}]})";

uint32_t told_limit(const Capabilities& device, const std::string& name) {
  if (name == "maxComputeWorkGroupInvocations") return device.max_workgroup_invocations;
  if (name == "maxComputeSharedMemorySize") return device.max_shared_bytes;
  if (name == "maxPushConstantsSize") return device.max_push_bytes;
  if (name == "maxStorageBufferRange") return static_cast<uint32_t>(device.max_storage_range);
  if (name == "minStorageBufferOffsetAlignment") return static_cast<uint32_t>(device.storage_alignment);
  if (name == "maxMemoryAllocationSize") return static_cast<uint32_t>(device.max_allocation);
  if (name == "maxBufferSize") return static_cast<uint32_t>(device.max_buffer_bytes);
  if (name == "maxComputeWorkGroupSize") return device.max_workgroup_size[0];
  if (name == "maxPerStageDescriptorStorageBuffers") return device.max_storage_buffers;
  return 0;
}

}  // namespace

TEST_CASE("a profile with a mistake is refused in a sentence") {
  CHECK(refusal_of(std::string("{") + rest).empty());
  CHECK_THAT(refusal_of("{}"), ContainsSubstring("lacks 'heaps'"));
  CHECK_THAT(refusal_of(std::string(R"({"limts": {}, )") + rest),
             ContainsSubstring("'limts', which nothing"));
  CHECK_THAT(refusal_of(std::string(R"({"limits": {"maxTeapots": 1}, )") + rest),
             ContainsSubstring("'maxTeapots', which isn't known"));
  CHECK_THAT(refusal_of(std::string(R"({"hidden": ["fp17"], )") + rest), ContainsSubstring("'fp17'"));
  CHECK_THAT(refusal_of(std::string(R"({"limits": {"maxComputeWorkGroupSize": [1, 2]}, )") + rest),
             ContainsSubstring("three numbers"));
  CHECK_THAT(refusal_of(R"({"heaps": [{"MiB": 1, "device_local": true}],
                            "memory_types": [{"heap": 0, "is": ["device_local", "host_visible"]}],
                            "queue_families": []})"),
             ContainsSubstring("host_visible and host_coherent"));
  CHECK_THAT(
      refusal_of(R"({"heaps": [{"MiB": 1, "budget_MiB": 2}], "memory_types": [], "queue_families": []})"),
      ContainsSubstring("heaps[0]"));
  CHECK_THAT(
      refusal_of(
          std::string(R"({"identity": {"name": "a", "type": "toaster", "vendor_id": 1, "device_id": 1}, )") +
          rest),
      ContainsSubstring("'toaster'"));
}

TEST_CASE("every profile is told as it stands in its file, and the device can be used") {
  Messages plain_messages;
  const Capabilities driver = software_device(*plain_instance(plain_messages)).capabilities;
  REQUIRE(profile_names().size() >= 5);
  for (const std::string& name : profile_names()) {
    INFO(name);
    const pretend::Profile profile = pretend::read_profile(profile_path(name));
    OpenedDevice opened = open_pretended(name);
    const Capabilities& told = opened.device->capabilities();
    CHECK_FALSE(why_unusable(told));
    if (profile.identity) {
      CHECK(told.name == profile.identity->name);
      CHECK(told.vendor_id == profile.identity->vendor_id);
      CHECK(told.device_id == profile.identity->device_id);
      CHECK(told.type != DeviceType::cpu);
      CHECK(told.driver_id == 0);
      CHECK(told.quirks.empty());
    } else {
      CHECK(told.name == driver.name);
      CHECK(told.quirks == driver.quirks);
    }
    CHECK(told.device_uuid != driver.device_uuid);
    CHECK(told.pipeline_cache_uuid != driver.pipeline_cache_uuid);
    size_t looked_at = 0;
    for (const pretend::Limit& limit : profile.limits) {
      if (told_limit(told, limit.name) == 0) continue;
      INFO(limit.name);
      ++looked_at;
      const uint32_t own = told_limit(driver, limit.name);
      const auto wanted = static_cast<uint32_t>(limit.values[0]);
      CHECK(told_limit(told, limit.name) ==
            (limit.name.starts_with("min") ? std::max(own, wanted) : std::min(own, wanted)));
    }
    CHECK(looked_at >= std::min<size_t>(profile.limits.size() - 1, 3));
    REQUIRE(told.heaps.size() == profile.heaps.size());
    const std::vector<HeapBudget> budgets = opened.device->heap_budgets();
    for (size_t i = 0; i < told.heaps.size(); ++i) {
      CHECK(told.heaps[i].bytes == profile.heaps[i].bytes);
      CHECK(told.heaps[i].device_local == profile.heaps[i].device_local);
      CHECK(budgets[i].budget_bytes == profile.heaps[i].budget);
    }
    REQUIRE(told.memory_types.size() == profile.memory_types.size());
    for (size_t i = 0; i < told.memory_types.size(); ++i) {
      const VkMemoryPropertyFlags flags = profile.memory_types[i].flags;
      CHECK(told.memory_types[i].host_visible == ((flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0));
      CHECK(told.memory_types[i].host_coherent == ((flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0));
    }
    CHECK(told.timestamp_valid_bits == profile.queue_families[opened.device->queue_family()].timestamp_bits);
    for (const auto& [word, need] : {std::pair{"storage16", Need::storage16},
                                     {"fp16", Need::fp16},
                                     {"int8", Need::int8},
                                     {"int64", Need::int64},
                                     {"addresses", Need::addresses},
                                     {"coopmat", Need::coopmat},
                                     {"coopmat2", Need::coopmat2},
                                     {"subgroup_control", Need::subgroup_control}}) {
      INFO(word);
      const bool hidden = std::ranges::find(profile.hidden, word) != profile.hidden.end();
      CHECK(told.supports(need) == (driver.supports(need) && !hidden));
    }
    opened.require_silence();
  }
}

TEST_CASE("what the profiles are for") {
  const auto of = [](const char* name) { return open_pretended(name).device->capabilities(); };
  const Capabilities card = of("discrete_card"), phone = of("phone"), least = of("least"),
                     integrated = of("integrated"), own_memory = of("own_memory");
  CHECK(card.type == DeviceType::discrete);
  CHECK_FALSE(card.unified_memory());
  CHECK_FALSE(own_memory.unified_memory());
  CHECK(own_memory.type == DeviceType::cpu);
  CHECK(integrated.unified_memory());
  CHECK(integrated.unified_cached_memory());
  CHECK(phone.unified_memory());
  CHECK(phone.supports(Need::storage16 | Need::fp16));
  CHECK_FALSE(phone.supports(Need::addresses));
  CHECK_FALSE(least.unified_memory());
  CHECK(least.has == Need::none);
  CHECK(least.max_workgroup_invocations == 128);
  CHECK(least.max_shared_bytes == 16384);
  CHECK(least.max_push_bytes == 128);
  CHECK(open_pretended("discrete_card").device->queue_family() == 1);
}

}  // namespace vitrine::test
