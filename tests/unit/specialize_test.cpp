#include "runtime/vk/specialize.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "runtime/vk/reflection.h"
#include "runtime/vk/shader_table.h"
#include "runtime/vk/shared_memory.h"
#include "runtime/vk/spirv.h"
#include "tests/support/spirv_builder.h"

namespace vitrine {
namespace {

using namespace test::spirv;
using Words = std::vector<uint32_t>;

// The instructions with these opcodes, by their second operand: the result of what defines a constant.
std::map<uint32_t, Words> defined(const Words& words) {
  std::map<uint32_t, Words> out;
  spv::for_each_instruction(words, [&](uint32_t opcode, spv::Words operands) {
    if (opcode < spv::constant_true || opcode > spv::spec_constant_op) return;
    out[operands[1]] = {opcode};
    out[operands[1]].insert(out[operands[1]].end(), operands.begin(), operands.end());
  });
  return out;
}

size_t count_of(const Words& words, uint32_t wanted) {
  size_t count = 0;
  spv::for_each_instruction(words, [&](uint32_t opcode, spv::Words) { count += opcode == wanted; });
  return count;
}

}  // namespace

TEST_CASE("specialization constants and what is computed from them become ordinary constants") {
  constexpr uint32_t boolean = 2, number = 3, size = 10, more = 11, product = 12, on = 13, below = 14,
                     three = 15, group = 16, triple = 4;
  test::SpirvBuilder module;
  module.op(OpDecorate, {size, SpecId, 0})
      .op(OpDecorate, {on, SpecId, 1})
      .op(OpDecorate, {more, SpecId, 2})
      .op(OpDecorate, {group, BuiltIn, 25})
      .op(OpTypeBool, {boolean})
      .op(OpTypeInt, {number, 32, 0})
      .op(OpTypeVector, {triple, number, 3})
      .op(OpSpecConstant, {number, size, 5})
      .op(OpSpecConstantTrue, {boolean, on})
      .op(OpSpecConstant, {number, more, 9})
      .op(OpConstant, {number, three, 3})
      .op(OpSpecConstantOp, {number, product, IMul, size, three})
      .op(OpSpecConstantOp, {boolean, below, OpULessThan, product, more})
      .op(OpSpecConstantComposite, {triple, group, size, three, product});
  const Words given = specialize(module.words(), Words{7, 0});
  const auto constants = defined(given);
  CHECK(constants.at(size) == Words{OpConstant, number, size, 7});
  CHECK(constants.at(on) == Words{spv::constant_false, boolean, on});
  CHECK(constants.at(more) == Words{OpConstant, number, more, 9});  // its default
  CHECK(constants.at(three) == Words{OpConstant, number, three, 3});
  CHECK(constants.at(product) == Words{OpConstant, number, product, 21});
  CHECK(constants.at(below) == Words{spv::constant_false, boolean, below});
  CHECK(constants.at(group) == Words{spv::constant_composite, triple, group, size, three, product});
  CHECK(count_of(given, OpDecorate) == 1);  // of the group's size alone
  const auto defaults = defined(specialize(module.words(), {}));
  CHECK(defaults.at(on) == Words{spv::constant_true, boolean, on});
  CHECK(defaults.at(product) == Words{OpConstant, number, product, 15});
}

TEST_CASE("what has no value of 32 bits stays what it is") {
  constexpr uint32_t number = 3, wide = 4, pair = 5, value = 10, quotient = 11, both = 12, large = 13,
                     sum = 14;
  test::SpirvBuilder module;
  module.op(OpDecorate, {value, SpecId, 0})
      .op(OpDecorate, {large, SpecId, 1})
      .op(OpTypeInt, {number, 32, 0})
      .op(OpTypeInt, {wide, 64, 0})
      .op(OpTypeVector, {pair, number, 2})
      .op(OpSpecConstant, {number, value, 5})
      .op(OpSpecConstant, {wide, large, 5, 0})
      .op(OpSpecConstantOp, {number, quotient, UDiv, value, value})
      .op(OpSpecConstantComposite, {pair, both, value, quotient})
      .op(OpSpecConstantOp, {wide, sum, OpIAdd, large, large});
  const auto constants = defined(specialize(module.words(), Words{0}));
  CHECK(constants.at(value) == Words{OpConstant, number, value, 0});
  CHECK(constants.at(quotient) == Words{OpSpecConstantOp, number, quotient, UDiv, value, value});  // 0 / 0
  CHECK(constants.at(both) == Words{OpSpecConstantComposite, pair, both, value, quotient});
  CHECK(constants.at(large) == Words{OpSpecConstant, wide, large, 5, 0});
  CHECK(constants.at(sum) == Words{OpSpecConstantOp, wide, sum, OpIAdd, large, large});
}

TEST_CASE("a loop that decides anything in its body is left rolled, also where another function decides") {
  constexpr uint32_t nothing = 1, boolean = 2, of_function = 3, number = 4, fixed = 10, loaded = 11,
                     main = 20, deciding = 21, calling = 22, plain = 23;
  // A loop that ends at `end`, with such a body.
  const auto loop = [](test::SpirvBuilder& module, uint32_t end, const auto& body) {
    module.op(OpLabel, {end - 1})
        .op(OpLoopMerge, {end, end + 1, 1})
        .op(OpBranch, {end - 2})
        .op(OpLabel, {end - 2});
    body();
    module.op(OpBranch, {end + 1}).op(OpLabel, {end + 1}).op(OpBranch, {end - 1}).op(OpLabel, {end});
  };
  test::SpirvBuilder module;
  module.op(OpDecorate, {fixed, SpecId, 0})
      .op(OpTypeVoid, {nothing})
      .op(OpTypeBool, {boolean})
      .op(OpTypeInt, {number, 32, 0})
      .op(OpTypeFunction, {of_function, nothing})
      .op(OpSpecConstantTrue, {boolean, fixed})
      .op(OpFunction, {nothing, main, 0, of_function});
  const auto decide = [&](uint32_t condition, uint32_t at) {
    module.op(OpSelectionMerge, {at + 1, 0}).op(OpBranchConditional, {condition, at, at + 1});
    module.op(OpLabel, {at}).op(OpBranch, {at + 1}).op(OpLabel, {at + 1});
  };
  const auto call = [&](uint32_t callee) { module.op(OpFunctionCall, {nothing, 90 + callee, callee}); };
  loop(module, 100, [] {});
  loop(module, 200, [&] { decide(loaded, 205); });
  loop(module, 300, [&] { decide(fixed, 305); });
  loop(module, 400, [&] { call(plain); });
  loop(module, 500, [&] { call(calling); });
  loop(module, 600, [&] { loop(module, 700, [&] { decide(loaded, 705); }); });
  module.op(OpFunctionEnd, {});
  module.op(OpFunction, {nothing, deciding, 0, of_function}).op(OpLabel, {800});
  decide(loaded, 805);
  module.op(OpFunctionEnd, {}).op(OpFunction, {nothing, calling, 0, of_function}).op(OpLabel, {900});
  call(deciding);
  module.op(OpFunctionEnd, {}).op(OpFunction, {nothing, plain, 0, of_function}).op(OpLabel, {950});
  decide(fixed, 955);
  module.op(OpFunctionEnd, {});

  std::map<uint32_t, uint32_t> controls;
  spv::for_each_instruction(specialize(module.words(), Words{0}), [&](uint32_t opcode, spv::Words operands) {
    if (opcode == OpLoopMerge) controls[operands[0]] = operands[2];
  });
  constexpr uint32_t unroll = 1, dont_unroll = 2;
  CHECK(controls == std::map<uint32_t, uint32_t>{{100, unroll},
                                                 {200, dont_unroll},
                                                 {300, unroll},
                                                 {400, unroll},
                                                 {500, dont_unroll},
                                                 {600, dont_unroll},
                                                 {700, dont_unroll}});
}

TEST_CASE("every shader has no specialization constant left, and says the same of itself") {
  for (const ShaderVariant& shader : all_shaders()) {
    CAPTURE(shader.shader, shader.variant);
    const Reflection before = reflect(shader.words);
    Words constants;
    for (const ReflectedConstant& constant : before.constants)
      constants.push_back(static_cast<uint32_t>(constant.default_value));
    const Words words = specialize(shader.words, constants);
    const Reflection after = reflect(words);
    CHECK(after.constants.empty());
    CHECK(count_of(words, OpSpecConstant) + count_of(words, OpSpecConstantTrue) +
              count_of(words, spv::spec_constant_false) ==
          0);
    CHECK(after.workgroup_size == before.workgroup_size_with(constants));
    CHECK(after.bindings.size() == before.bindings.size());
    CHECK(after.push_bytes == before.push_bytes);
    CHECK(after.capabilities == before.capabilities);
    CHECK(shared_bytes_of(words, {}) == shared_bytes_of(shader.words, constants));
  }
}

}  // namespace vitrine
