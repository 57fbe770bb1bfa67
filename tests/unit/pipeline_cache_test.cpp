#include "runtime/vk/pipeline_cache.h"

#include <catch2/catch_test_macros.hpp>

#include "tests/support/made_up/made_up_device.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

using test::Variables;

Capabilities device_with_ids() {
  Capabilities device = test::plain_gpu();
  for (uint8_t i = 0; i < 16; ++i) {
    device.device_uuid[i] = i;
    device.pipeline_cache_uuid[i] = static_cast<uint8_t>(100 + i);
  }
  device.driver_version = 0x1234;
  device.vendor_id = 0x1002;
  return device;
}

}  // namespace

TEST_CASE("a pipeline cache file gives back what it was made of") {
  const Capabilities device = device_with_ids();
  const std::vector<std::byte> data = test::to_bytes("compiled machine code");
  const std::vector<std::byte> file = wrap_pipeline_cache(device, data);
  const auto out = unwrap_pipeline_cache(device, file);
  REQUIRE(out);
  CHECK(std::vector<std::byte>(out->begin(), out->end()) == data);
  const auto empty = unwrap_pipeline_cache(device, wrap_pipeline_cache(device, {}));
  REQUIRE(empty);
  CHECK(empty->empty());
}

TEST_CASE("a damaged pipeline cache file is discarded, whichever byte it is") {
  const Capabilities device = device_with_ids();
  const std::vector<std::byte> file = wrap_pipeline_cache(device, test::to_bytes("compiled machine code"));
  for (size_t i = 0; i < file.size(); ++i) {
    std::vector<std::byte> damaged = file;
    damaged[i] ^= std::byte{0x10};
    CHECK_FALSE(unwrap_pipeline_cache(device, damaged));
    CHECK_FALSE(unwrap_pipeline_cache(device, std::span(file).first(i)));
  }
  std::vector<std::byte> longer = file;
  longer.push_back(std::byte{0});
  CHECK_FALSE(unwrap_pipeline_cache(device, longer));
}

TEST_CASE("a pipeline cache is for one device with one driver") {
  const Capabilities device = device_with_ids();
  const std::vector<std::byte> file = wrap_pipeline_cache(device, test::to_bytes("x"));
  Capabilities other = device;
  SECTION("another driver version") { other.driver_version += 1; }
  SECTION("another device") { other.device_uuid[15] ^= 1; }
  SECTION("another compiler") { other.pipeline_cache_uuid[0] ^= 1; }
  CHECK_FALSE(unwrap_pipeline_cache(other, file));
  if (other.pipeline_cache_uuid == device.pipeline_cache_uuid) {
    CHECK(pipeline_cache_name(other) != pipeline_cache_name(device));
  }
  CHECK(pipeline_cache_name(device) == "pipelines-000102030405060708090a0b0c0d0e0f-00001234.bin");
}

TEST_CASE("the cache folder follows three variables in order") {
  {
    const Variables set({{"VITRINE_CACHE_DIR", "/a"}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}});
    CHECK(cache_folder() == std::filesystem::path("/a/"));
  }
  {
    const Variables set({{"VITRINE_CACHE_DIR", std::nullopt}, {"XDG_CACHE_HOME", "/b"}, {"HOME", "/c"}});
    CHECK(cache_folder() == std::filesystem::path("/b/vitrine"));
  }
  {
    const Variables set({{"VITRINE_CACHE_DIR", std::nullopt},
                         {"XDG_CACHE_HOME", std::nullopt},
                         {"HOME", "/c"},
                         {"LOCALAPPDATA", "/c"}});
    CHECK(cache_folder() == "/c" / test::cache_below_home / "vitrine");
  }
  const Variables set({{"VITRINE_CACHE_DIR", std::nullopt},
                       {"XDG_CACHE_HOME", std::nullopt},
                       {"HOME", std::nullopt},
                       {"LOCALAPPDATA", std::nullopt}});
  CHECK_FALSE(cache_folder());
}

}  // namespace vitrine
