#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/util/error.h"
#include "runtime/vk/pipeline.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/spirv_builder.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace test::spirv;

// A module and a request for it that fit each other and the plain GPU, for tests to break.
struct Fixture {
  Capabilities device = test::plain_gpu();
  Reflection module;
  ShaderVariant shader{.shader = "made_up", .variant = "f32"};
  std::vector<uint32_t> constants{64, 4};
  PipelineRequest request;

  Fixture() {
    module.bindings = {{.set = 0, .binding = 0, .storage_buffer = true, .readable = true},
                       {.set = 0, .binding = 1, .storage_buffer = true, .writable = true}};
    module.constants = {{.id = 0}, {.id = 1}};
    module.push_bytes = 12;
    module.workgroup_size_ids[0] = 0;
    module.capabilities = {1};
    request = {.shader = &shader, .operands = 2, .params_bytes = 12};
  }
  std::string failure() {
    request.constants = constants;
    try {
      check_pipeline(device, module, request);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::failed);
      CHECK_THAT(error.what(), ContainsSubstring("shader 'made_up', variant 'f32'"));
      return error.what();
    }
    return "";
  }
};

}  // namespace

TEST_CASE("a request that fits its module is accepted") {
  Fixture fixture;
  CHECK(fixture.failure().empty());
  fixture.shader.bind = BindMode::addresses;
  fixture.shader.access = "rw";
  fixture.shader.needs = Need::addresses;
  fixture.device = test::rich_gpu();
  fixture.module.bindings.clear();
  fixture.module.push_bytes = 16 + 12;
  CHECK(fixture.failure().empty());
  CHECK(push_bytes_of(fixture.request) == 28);
}

TEST_CASE("bindings must be dense, in set 0, storage buffers, and as many as operands") {
  SECTION("too few operands") {
    Fixture fixture;
    fixture.request.operands = 1;
    CHECK_THAT(fixture.failure(), ContainsSubstring("it has 2 bindings, 1 operands are bound"));
  }
  SECTION("a gap") {
    Fixture fixture;
    fixture.module.bindings[1].binding = 2;
    CHECK_THAT(fixture.failure(), ContainsSubstring("binding 1 expected, set 0 binding 2 found"));
  }
  SECTION("another set") {
    Fixture fixture;
    fixture.module.bindings[1].set = 1;
    CHECK_THAT(fixture.failure(), ContainsSubstring("set 1 binding 1 found"));
  }
  SECTION("an image") {
    Fixture fixture;
    fixture.module.bindings[0].storage_buffer = false;
    CHECK_THAT(fixture.failure(), ContainsSubstring("binding 0 is no storage buffer"));
  }
  SECTION("more than the device takes") {
    Fixture fixture;
    fixture.device.max_storage_buffers = 1;
    CHECK_THAT(fixture.failure(), ContainsSubstring("takes 1"));
  }
  SECTION("bindings beside addresses") {
    Fixture fixture;
    fixture.shader.bind = BindMode::addresses;
    fixture.shader.access = "rw";
    CHECK_THAT(fixture.failure(), ContainsSubstring("it has 2 bindings, 0 operands are bound"));
  }
  SECTION("access to another number of addresses") {
    Fixture fixture;
    fixture.shader.bind = BindMode::addresses;
    fixture.shader.access = "rrw";
    fixture.module.bindings.clear();
    CHECK_THAT(fixture.failure(), ContainsSubstring("access to 3 addresses, 2 are given"));
  }
}

TEST_CASE("push constants must have the module's size and fit the device") {
  Fixture fixture;
  fixture.request.params_bytes = 16;
  CHECK_THAT(fixture.failure(), ContainsSubstring("push constants take 12 bytes, 16 are given"));
  fixture.request.params_bytes = fixture.module.push_bytes = 132;
  CHECK_THAT(fixture.failure(), ContainsSubstring("132 bytes") && ContainsSubstring("has 128"));
}

TEST_CASE("specialization constants must be dense, 32 bits wide and all given") {
  SECTION("one too few") {
    Fixture fixture;
    fixture.constants.pop_back();
    CHECK_THAT(fixture.failure(), ContainsSubstring("it has 2 specialization constants, 1 are given"));
  }
  SECTION("a gap") {
    Fixture fixture;
    fixture.module.constants[1].id = 3;
    CHECK_THAT(fixture.failure(), ContainsSubstring("constant 1 expected, 3 found"));
  }
  SECTION("64 bits") {
    Fixture fixture;
    fixture.module.constants[1].bytes = 8;
    CHECK_THAT(fixture.failure(), ContainsSubstring("no 32-bit value"));
  }
}

TEST_CASE("the workgroup must fit the device") {
  Fixture fixture;
  fixture.constants[0] = 1024;
  CHECK(fixture.failure().empty());
  fixture.constants[0] = 1025;
  CHECK_THAT(fixture.failure(), ContainsSubstring("1025x1x1") && ContainsSubstring("1024x1024x64"));
  fixture.constants[0] = 0;
  CHECK_THAT(fixture.failure(), ContainsSubstring("0x1x1"));
  fixture.constants[0] = 64;
  fixture.module.workgroup_size = {1, 32, 1};
  CHECK_THAT(fixture.failure(), ContainsSubstring("2048 invocations") && ContainsSubstring("allows 1024"));
}

TEST_CASE("the workgroup's shared memory must fit the device") {
  // shared uint words[constant_1 * 1024];
  test::SpirvBuilder words;
  words.op(OpDecorate, {10, SpecId, 1})
      .op(OpTypeInt, {3, 32, 0})
      .op(OpSpecConstant, {3, 10, 5})
      .op(OpConstant, {3, 11, 1024})
      .op(OpSpecConstantOp, {3, 12, IMul, 10, 11})
      .op(OpTypeArray, {5, 3, 12})
      .op(OpTypePointer, {6, Workgroup, 5})
      .op(OpVariable, {6, 20, Workgroup});
  const std::vector<uint32_t> module = words.words();
  Fixture fixture;
  fixture.shader.words = module;
  fixture.device.max_shared_bytes = 32 << 10;
  fixture.constants[1] = 8;
  CHECK(fixture.failure().empty());
  fixture.constants[1] = 9;
  CHECK_THAT(fixture.failure(), ContainsSubstring("shares 36864 bytes") && ContainsSubstring("has 32768"));
}

TEST_CASE("what the module or its variant needs must be there") {
  Fixture fixture;
  fixture.module.capabilities.push_back(6022);  // CooperativeMatrixKHR
  CHECK_THAT(fixture.failure(), ContainsSubstring("it needs coopmat") && ContainsSubstring("has none"));
  fixture.device = test::rich_gpu();
  CHECK(fixture.failure().empty());
  fixture.module.capabilities.push_back(10);  // Float64
  CHECK_THAT(fixture.failure(), ContainsSubstring("SPIR-V capability 10"));

  Fixture declared;
  declared.shader.needs = Need::storage16;
  CHECK_THAT(declared.failure(), ContainsSubstring("it needs storage16"));

  Fixture subgroups;
  subgroups.module.capabilities.push_back(65);  // GroupNonUniformShuffle
  CHECK_THAT(subgroups.failure(), ContainsSubstring("subgroup operations"));
}

TEST_CASE("a subgroup size must be one that the device can be asked for") {
  Fixture fixture;
  fixture.device = test::rich_gpu();
  for (const uint32_t size : {32u, 64u}) {
    fixture.request.subgroup_size = size;
    CHECK(fixture.failure().empty());
  }
  for (const uint32_t size : {16u, 48u, 128u}) {
    fixture.request.subgroup_size = size;
    CHECK_THAT(fixture.failure(), ContainsSubstring("has 32 to 64"));
  }
  fixture.request.subgroup_size = 64;
  fixture.constants[0] = 96;
  CHECK_THAT(fixture.failure(), ContainsSubstring("full subgroups of 64"));
  fixture.constants[0] = 1024;
  fixture.request.subgroup_size = 32;
  fixture.device.max_workgroup_subgroups = 16;
  CHECK_THAT(fixture.failure(), ContainsSubstring("32 subgroups") && ContainsSubstring("allows 16"));

  // Without control only a device's one and only size will do.
  Fixture single;
  single.request.subgroup_size = 32;
  CHECK(single.failure().empty());
  single.device.max_subgroup_size = 64;
  CHECK_THAT(single.failure(), ContainsSubstring("can't choose it"));
}

}  // namespace vitrine
