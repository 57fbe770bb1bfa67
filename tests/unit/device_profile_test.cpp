// Capabilities as a file: what is written is read back, and what no device has is refused.
#include "runtime/tune/device_profile.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "model/vit/presets.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/plan.h"
#include "runtime/util/error.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/plan_text.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// `text` with its first `from` replaced.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// What a profile that holds no UUIDs is refused with.
std::string refusal(const std::string& text) {
  try {
    parse_device_profile(text, "card.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("device profile: what is written is read back, and makes the same plans") {
  ViTConfig config = preset("vit_tiny_patch16_224");
  config.depth = 1;
  for (const Capabilities& device : test::devices_of_all_kinds()) {
    INFO(device.name);
    const std::string text = device_profile_to_json(device);
    const Capabilities read = parse_device_profile(text, "card.json");
    CHECK(device_profile_to_json(read) == text);
    CHECK(read.matrix_sums == device.matrix_sums);
    CHECK(read.published == device.published);
    CHECK(read.cooperative_shapes == device.cooperative_shapes);
    CHECK(read.flexible_shapes == device.flexible_shapes);
    CHECK(read.heaps == device.heaps);
    CHECK(read.memory_types == device.memory_types);
    const DType dtype = device.supports(Need::storage16) ? DType::f16 : DType::f32;
    const auto graph = make_vit_graph(config, {.batch = 8, .dtype = dtype});
    CHECK(test::text_of(make_plan(graph, read)) == test::text_of(make_plan(graph, device)));
  }
}

TEST_CASE("device profile: a file that is none is refused in one sentence that names the member") {
  Capabilities device = test::arc_gpu();
  device.published.clock_ghz = 2.5;
  device.matrix_sums = MatrixSums::alternate;
  const std::string right = device_profile_to_json(device);
  REQUIRE(refusal(right) == "");
  CHECK_THAT(refusal("{}"), ContainsSubstring("card.json: found no \"format\""));
  CHECK_THAT(refusal("[]"), ContainsSubstring("expected an object"));
  CHECK_THAT(refusal(with(right, "device profile", "kernel choices")),
             ContainsSubstring("expected \"vitrine device profile\" version 1"));
  CHECK_THAT(refusal(with(right, "\"subgroup_size\"", "\"subgroup_sise\"")),
             ContainsSubstring("found no \"subgroup_size\""));
  CHECK_THAT(refusal(with(right, "\"memory_model\"", "\"memory_modle\"")),
             ContainsSubstring("found \"memory_modle\", which is no member"));
  CHECK_THAT(refusal(with(right, "\"clock_ghz\"", "\"clock_mhz\"")),
             ContainsSubstring("found \"published.clock_mhz\""));
  CHECK_THAT(refusal(with(right, "\"clock_ghz\":2.5", "\"clock_ghz\":-1")),
             ContainsSubstring("\"published.clock_ghz\" is -1"));
  CHECK_THAT(refusal(with(right, "\"discrete\"", "\"huge\"")),
             ContainsSubstring("expected other, integrated"));
  CHECK_THAT(refusal(with(right, "\"alternate\"", "\"in turns\"")),
             ContainsSubstring("\"matrix_sums\" is \"in turns\", expected unknown, operands"));
  CHECK_THAT(refusal(with(right, "\"coopmat\"", "\"coopcat\"")),
             ContainsSubstring("\"supports\" is \"coopcat\""));
  CHECK_THAT(refusal(with(right, "\"vulkan\": \"1.3.0\"", "\"vulkan\": \"1.2.0\"")),
             ContainsSubstring("\"vulkan\" is below 1.3.0"));
  CHECK_THAT(refusal(with(right, "\"vulkan\": \"1.3.0\"", "\"vulkan\": \"1.3\"")),
             ContainsSubstring("expected a version"));
  CHECK_THAT(refusal(with(right, "\"subgroup_size\": 32", "\"subgroup_size\": 0")),
             ContainsSubstring("subgroup sizes"));
  CHECK_THAT(refusal(with(right, "\"max_shared_bytes\": 65536", "\"max_shared_bytes\": 4294967296")),
             ContainsSubstring("expected a whole number from 0 to 4294967295"));
  CHECK_THAT(refusal(with(right, "\"m\":8", "\"m\":0")), ContainsSubstring("a matrix is smaller than 1"));
  CHECK_THAT(refusal(with(right, "\"heap\":1", "\"heap\":7")),
             ContainsSubstring("names a heap that isn't there"));
  CHECK_THAT(refusal("{\"format\": \"vitrine device profile\", \"format\": 1}"),
             ContainsSubstring("card.json"));
}

}  // namespace vitrine
