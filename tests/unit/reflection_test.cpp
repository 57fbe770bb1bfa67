#include "runtime/vk/reflection.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>

#include "runtime/util/error.h"
#include "runtime/vk/shader_table.h"
#include "tests/support/spirv_builder.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace test::spirv;
using test::SpirvBuilder;

// A compute module's beginning; the ids below 20 are taken.
SpirvBuilder begin() {
  SpirvBuilder module;
  module.op(OpCapability, {1}).text_op(OpEntryPoint, {5, 1}, "main");
  return module;
}

// float = 2, uint = 3, a block { float[] } = 5
SpirvBuilder& types(SpirvBuilder& module) {
  return module.op(OpTypeFloat, {2, 32})
      .op(OpTypeInt, {3, 32, 0})
      .op(OpTypeRuntimeArray, {4, 2})
      .op(OpTypeStruct, {5, 4})
      .op(OpTypePointer, {6, StorageBuffer, 5});
}

std::string failure_of(const std::vector<uint32_t>& words) {
  try {
    reflect(words);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("reflection reads bindings in order with their access") {
  SpirvBuilder module = begin();
  module.text_op(OpName, {22}, "result")
      .op(OpDecorate, {20, DescriptorSet, 0})
      .op(OpDecorate, {20, Binding, 2})
      .op(OpDecorate, {21, DescriptorSet, 0})
      .op(OpDecorate, {21, Binding, 0})
      .op(OpDecorate, {21, NonWritable})
      .op(OpDecorate, {22, DescriptorSet, 0})
      .op(OpDecorate, {22, Binding, 1})
      .op(OpMemberDecorate, {7, 0, NonReadable})
      .op(OpMemberDecorate, {7, 0, Offset, 0});
  types(module)
      .op(OpTypeStruct, {7, 4})
      .op(OpTypePointer, {8, StorageBuffer, 7})
      .op(OpVariable, {6, 20, StorageBuffer})
      .op(OpVariable, {6, 21, StorageBuffer})
      .op(OpVariable, {8, 22, StorageBuffer});
  const Reflection out = reflect(module.words());
  REQUIRE(out.bindings.size() == 3);
  CHECK((out.bindings[0].readable && !out.bindings[0].writable));
  CHECK((!out.bindings[1].readable && out.bindings[1].writable));
  CHECK(out.bindings[1].name == "result");
  CHECK((out.bindings[2].readable && out.bindings[2].writable));
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(out.bindings[i].binding == i);
    CHECK(out.bindings[i].storage_buffer);
  }
  CHECK_FALSE(out.uses_subgroups);
  CHECK(out.push_bytes == 0);
}

TEST_CASE("access holds for a block only when every member agrees") {
  SpirvBuilder module = begin();
  module.op(OpDecorate, {20, DescriptorSet, 0})
      .op(OpDecorate, {20, Binding, 0})
      .op(OpMemberDecorate, {7, 0, NonWritable})
      .op(OpMemberDecorate, {7, 0, Offset, 0})
      .op(OpMemberDecorate, {7, 1, Offset, 4});
  types(module)
      .op(OpTypeStruct, {7, 3, 4})
      .op(OpTypePointer, {8, StorageBuffer, 7})
      .op(OpVariable, {8, 20, StorageBuffer});
  CHECK(reflect(module.words()).bindings.at(0).writable);
}

TEST_CASE("uniform buffers, images and arrays of buffers are no storage buffers") {
  const auto kind_of = [](uint32_t storage, bool old_block, bool array) {
    SpirvBuilder module = begin();
    module.op(OpDecorate, {20, DescriptorSet, 0}).op(OpDecorate, {20, Binding, 0});
    if (old_block) module.op(OpDecorate, {5, BufferBlock});
    types(module).op(OpConstant, {3, 9, 4}).op(OpTypeArray, {10, 5, 9});
    module.op(OpTypePointer, {8, storage, array ? 10u : 5u}).op(OpVariable, {8, 20, storage});
    return reflect(module.words()).bindings.at(0).storage_buffer;
  };
  CHECK(kind_of(StorageBuffer, false, false));
  CHECK(kind_of(Uniform, true, false));
  CHECK_FALSE(kind_of(Uniform, false, false));
  CHECK_FALSE(kind_of(StorageBuffer, false, true));
}

TEST_CASE("the push-constant block's size follows offsets and strides") {
  SpirvBuilder module = begin();
  for (uint32_t member = 0; member < 5; ++member) {
    static constexpr uint32_t offsets[] = {0, 8, 16, 32, 80};
    module.op(OpMemberDecorate, {30, member, Offset, offsets[member]});
  }
  module.op(OpMemberDecorate, {30, 3, MatrixStride, 16}).op(OpDecorate, {11, ArrayStride, 8});
  types(module)
      .op(OpConstant, {3, 9, 3})
      .op(OpTypeVector, {10, 2, 3})
      .op(OpTypeMatrix, {12, 10, 3})
      .op(OpTypeArray, {11, 3, 9})
      .op(OpTypePointer, {13, 5349, 5})  // PhysicalStorageBuffer: an address
      .op(OpTypeStruct, {30, 13, 3, 10, 12, 11})
      .op(OpTypePointer, {31, PushConstant, 30})
      .op(OpVariable, {31, 32, PushConstant});
  // The array starts at 80 and has three elements of stride 8.
  CHECK(reflect(module.words()).push_bytes == 104);
}

TEST_CASE("specialization constants are found by id with their defaults and names") {
  SpirvBuilder module = begin();
  module.text_op(OpName, {23}, "TILE")
      .op(OpDecorate, {20, SpecId, 2})
      .op(OpDecorate, {21, SpecId, 0})
      .op(OpDecorate, {22, SpecId, 1})
      .op(OpDecorate, {23, SpecId, 3})
      .op(OpDecorate, {24, SpecId, 3});
  types(module)
      .op(20, {7})                // bool
      .op(OpTypeInt, {8, 64, 0})  // 64 bits
      .op(OpSpecConstantTrue, {7, 20})
      .op(OpSpecConstant, {3, 21, 64})
      .op(OpSpecConstant, {8, 22, 5, 1})
      .op(OpSpecConstant, {3, 23, 16})
      .op(OpSpecConstant, {3, 24, 16});
  const Reflection out = reflect(module.words());
  REQUIRE(out.constants.size() == 4);
  CHECK(out.constants[0].default_value == 64);
  CHECK(out.constants[1].bytes == 8);
  CHECK(out.constants[1].default_value == (uint64_t{1} << 32 | 5));
  CHECK(out.constants[2].default_value == 1);
  CHECK(out.constants[3].name == "TILE");

  module.op(OpDecorate, {25, SpecId, 3}).op(OpSpecConstant, {8, 25, 17, 0});
  CHECK_THAT(failure_of(module.words()), ContainsSubstring("declared with two widths"));
}

TEST_CASE("the workgroup's size comes from its mode, its ids or the built-in constant") {
  SpirvBuilder fixed = begin();
  fixed.op(OpExecutionMode, {1, 17, 8, 4, 2});
  CHECK(reflect(fixed.words()).workgroup_size == std::array<uint32_t, 3>{8, 4, 2});
  CHECK_FALSE(reflect(fixed.words()).workgroup_size_ids[0]);

  const auto by_id = [](bool built_in) {
    SpirvBuilder module = begin();
    if (built_in) {
      module.op(OpExecutionMode, {1, 17, 1, 1, 1}).op(OpDecorate, {12, BuiltIn, 25});
    } else {
      module.op(OpExecutionModeId, {1, 38, 10, 11, 11});
    }
    module.op(OpDecorate, {10, SpecId, 3});
    types(module).op(OpSpecConstant, {3, 10, 64}).op(OpConstant, {3, 11, 1}).op(OpTypeVector, {13, 3, 3});
    if (built_in) module.op(OpSpecConstantComposite, {13, 12, 10, 11, 11});
    return reflect(module.words());
  };
  for (const bool built_in : {false, true}) {
    const Reflection out = by_id(built_in);
    CHECK(out.workgroup_size == std::array<uint32_t, 3>{64, 1, 1});
    CHECK(out.workgroup_size_ids[0] == 3u);
    CHECK_FALSE(out.workgroup_size_ids[1]);
    CHECK(out.workgroup_size_with(std::vector<uint32_t>{0, 0, 0, 256})[0] == 256);
    CHECK(out.workgroup_size_with({})[0] == 64);
  }
}

TEST_CASE("what a module needs follows from the capabilities that it declares") {
  SpirvBuilder module = begin();
  module.op(OpCapability, {9}).op(OpCapability, {4433}).op(OpCapability, {63}).op(OpCapability, {6022});
  module.op(349, {2, 20, 3, 0, 21});  // OpGroupNonUniformIAdd
  const Reflection out = reflect(module.words());
  const ModuleNeeds needs = needs_of(out);
  CHECK(needs.needs == (Need::fp16 | Need::storage16 | Need::coopmat));
  CHECK(needs.subgroup_operations == 4);  // arithmetic
  CHECK(needs.unknown.empty());
  CHECK(out.uses_subgroups);
  CHECK(out.declares(4433));
  CHECK_FALSE(out.declares(11));

  module.op(OpCapability, {10});  // Float64
  CHECK(needs_of(reflect(module.words())).unknown == std::vector<uint32_t>{10});
}

TEST_CASE("malformed modules end in a sentence") {
  CHECK_THAT(failure_of({}), ContainsSubstring("a header takes 5"));
  CHECK_THAT(failure_of({0x03022307, 0, 0, 0, 0}), ContainsSubstring("another number"));
  CHECK_THAT(failure_of({0x07230203, 0, 0, 0, 0}), ContainsSubstring("0 compute entry points"));

  std::vector<uint32_t> zero = begin().words();
  zero.push_back(0);
  CHECK_THAT(failure_of(zero), ContainsSubstring("claims 0 words"));
  zero.back() = 0xffff0011;
  CHECK_THAT(failure_of(zero), ContainsSubstring("claims 65535 words of 1"));

  SpirvBuilder unnamed = begin();
  unnamed.op(OpName, {3, 0x41414141});
  CHECK_THAT(failure_of(unnamed.words()), ContainsSubstring("string does not end"));

  SpirvBuilder twice = begin();
  types(twice).op(OpTypeFloat, {2, 32});
  CHECK_THAT(failure_of(twice.words()), ContainsSubstring("defined twice"));

  SpirvBuilder missing = begin();
  missing.op(OpVariable, {40, 41, StorageBuffer});
  CHECK_THAT(failure_of(missing.words()), ContainsSubstring("id 40 is used but not defined"));

  SpirvBuilder unbound = begin();
  types(unbound).op(OpVariable, {6, 20, StorageBuffer});
  CHECK_THAT(failure_of(unbound.words()), ContainsSubstring("no set or no binding"));

  SpirvBuilder itself = begin();
  itself.op(OpMemberDecorate, {30, 0, Offset, 0})
      .op(OpTypeStruct, {30, 30})
      .op(OpTypePointer, {31, PushConstant, 30})
      .op(OpVariable, {31, 32, PushConstant});
  CHECK_THAT(failure_of(itself.words()), ContainsSubstring("nested too deep"));

  SpirvBuilder huge = begin();
  huge.op(OpDecorate, {11, ArrayStride, 0xffffffff}).op(OpMemberDecorate, {30, 0, Offset, 0xffffffff});
  types(huge)
      .op(OpConstant, {3, 9, 0xffffffff})
      .op(OpTypeArray, {11, 3, 9})
      .op(OpTypeStruct, {30, 11})
      .op(OpTypePointer, {31, PushConstant, 30})
      .op(OpVariable, {31, 32, PushConstant});
  CHECK_THAT(failure_of(huge.words()), ContainsSubstring("larger than any device allows"));

  SpirvBuilder entries = begin();
  entries.text_op(OpEntryPoint, {5, 2}, "again");
  CHECK_THAT(failure_of(entries.words()), ContainsSubstring("2 compute entry points"));
}

TEST_CASE("every shader of this build is well formed and says what it needs") {
  REQUIRE_FALSE(all_shaders().empty());
  for (const ShaderVariant& row : all_shaders()) {
    CAPTURE(row.shader, row.variant);
    const Reflection out = reflect(row.words);
    const ModuleNeeds needs = needs_of(out);
    CHECK(needs.unknown.empty());
    CHECK(contains(row.needs, needs.needs));
    for (uint32_t i = 0; i < out.bindings.size(); ++i) {
      CHECK(out.bindings[i].set == 0);
      CHECK(out.bindings[i].binding == i);
      CHECK(out.bindings[i].storage_buffer);
      CHECK((out.bindings[i].readable || out.bindings[i].writable));
    }
    for (uint32_t i = 0; i < out.constants.size(); ++i) {
      CHECK(out.constants[i].id == i);
      CHECK(out.constants[i].bytes == 4);
      CHECK_FALSE(out.constants[i].name.empty());
      CHECK(std::ranges::count(out.constants, out.constants[i].name, &ReflectedConstant::name) == 1);
    }
    CHECK(out.workgroup_size_ids[0].has_value());
    CHECK(out.push_bytes <= 128);
    CHECK(out.push_bytes % 4 == 0);
    if (row.bind == BindMode::addresses) {
      CHECK(out.bindings.empty());
      CHECK_FALSE(row.access.empty());
      CHECK(out.push_bytes >= 8 * row.access.size());
    } else {
      CHECK_FALSE(out.bindings.empty());
    }
  }
}

TEST_CASE("truncated and damaged shaders never crash the reader") {
  REQUIRE_FALSE(all_shaders().empty());
  std::mt19937 random(1);
  size_t refused = 0, tried = 0;
  for (const ShaderVariant& row : all_shaders()) {
    const std::vector<uint32_t> words(row.words.begin(), row.words.end());
    // The definitions are at the beginning: cut everywhere there, and at random places behind.
    std::vector<size_t> cuts;
    for (size_t i = 0; i < std::min<size_t>(words.size(), 40); ++i) cuts.push_back(i);
    for (int i = 0; i < 20; ++i) cuts.push_back(random() % words.size());
    for (const size_t cut : cuts) {
      // A copy of exactly that size, so that a sanitizer sees reads past its end.
      const std::vector<uint32_t> shorter(words.begin(), words.begin() + static_cast<ptrdiff_t>(cut));
      refused += failure_of(shorter).empty() ? 0 : 1;
      ++tried;
    }
    for (int i = 0; i < 50; ++i) {
      std::vector<uint32_t> damaged = words;
      damaged[random() % std::min<size_t>(words.size(), 400)] = random() % 4 == 0 ? random() : random() % 64;
      refused += failure_of(damaged).empty() ? 0 : 1;
      ++tried;
    }
  }
  CHECK(refused > tried / 4);
}

TEST_CASE("shaders are found by name, and a missing one's error lists what there is") {
  const ShaderVariant& first = all_shaders().front();
  CHECK(&find_shader(first.shader, first.variant) == &first);
  CHECK(try_find_shader(first.shader, "no such variant") == nullptr);
  CHECK(try_find_shader("no such shader", first.variant) == nullptr);
  try {
    find_shader(first.shader, "no such variant");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring(std::string(first.variant)) && ContainsSubstring("'no such variant'"));
  }
}

}  // namespace vitrine
