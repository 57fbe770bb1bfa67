// Loops of SPIR-V that bench/capture counts, walked here by a reader of the few instructions that they are
// made of.
#include "bench/capture/passes.h"

#include <catch2/catch_test_macros.hpp>
#include <map>

#include "runtime/util/error.h"
#include "runtime/vk/reflection.h"
#include "runtime/vk/shader_table.h"
#include "tests/support/spirv_builder.h"

namespace vitrine::test {
namespace {

using capture::main_loop_of;
using capture::with_passes;
using capture::with_push_constants;
using Words = std::vector<uint32_t>;
using namespace spirv;

// Ids of the modules below. 100 and on are functions, 200 and on the first loop's, 300 and on the second's.
enum : uint32_t {
  none = 1,
  boolean,
  number,
  function_type,
  unknown,
  fixed,
  workgroup,
  subgroup,
  entry = 100,
  helper
};
constexpr uint32_t unroll = 1, keep = 2;

SpirvBuilder begin_module() {
  SpirvBuilder module;
  module.op(OpTypeVoid, {none}).op(OpTypeBool, {boolean}).op(OpTypeInt, {number, 32, 0});
  module.op(OpTypeFunction, {function_type, none}).op(OpUndef, {boolean, unknown});
  module.op(OpSpecConstantTrue, {boolean, fixed});
  module.op(OpConstant, {number, workgroup, 2}).op(OpConstant, {number, subgroup, 3});
  return module;
}
void begin_function(SpirvBuilder& module, uint32_t id) {
  module.op(OpFunction, {none, id, 0, function_type}).op(OpLabel, {id + 10});
}
void end_function(SpirvBuilder& module) { module.op(OpReturn, {}).op(OpFunctionEnd, {}); }

// A loop with blocks first + 0 (header), 1 (test), 2 (body), 3 (continue) and 4 (merge), which ends in its
// merge block. The body calls `called`, if any.
struct LoopShape {
  uint32_t first = 200, control = keep, barrier = workgroup, called = 0;
  bool leaves_if_true = false, at_end = false;
};
void put_loop(SpirvBuilder& module, const LoopShape& s) {
  module.op(OpBranch, {s.first}).op(OpLabel, {s.first});
  module.op(OpLoopMerge, {s.first + 4, s.first + 3, s.control}).op(OpBranch, {s.first + 1});
  module.op(OpLabel, {s.first + 1});
  const uint32_t stays = s.at_end ? s.first : s.first + 2;
  const auto leave = [&] {
    module.op(OpBranchConditional,
              {unknown, s.leaves_if_true ? s.first + 4 : stays, s.leaves_if_true ? stays : s.first + 4});
  };
  s.at_end ? void(module.op(OpBranch, {s.first + 2})) : leave();
  module.op(OpLabel, {s.first + 2});
  if (s.barrier != 0) module.op(OpControlBarrier, {s.barrier, workgroup, workgroup});
  if (s.called != 0) module.op(OpFunctionCall, {none, s.first + 5, s.called});
  module.op(OpBranch, {s.first + 3}).op(OpLabel, {s.first + 3});
  s.at_end ? leave() : void(module.op(OpBranch, {s.first}));
  module.op(OpLabel, {s.first + 4});
}
Words module_of(const std::vector<LoopShape>& loops) {
  SpirvBuilder module = begin_module();
  begin_function(module, entry);
  for (const LoopShape& loop : loops) put_loop(module, loop);
  end_function(module);
  return module.words();
}

// How often control comes into a block of the only function, up to a hundred times; what isn't known is true.
int visits_of(const Words& words, uint32_t wanted) {
  std::vector<std::span<const uint32_t>> all;
  std::map<uint32_t, size_t> labels;
  std::map<uint32_t, uint32_t> values;
  size_t begin = 0;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    all.push_back(std::span(words).subspan(at, words[at] >> 16));
    const uint32_t opcode = all.back()[0] & 0xffff;
    if (opcode == OpLabel) labels[all.back()[1]] = all.size() - 1;
    if (opcode == OpLabel && begin == 0) begin = all.size() - 1;
    if (opcode == OpConstant) values[all.back()[2]] = all.back()[3];
  }
  int visits = 0;
  uint32_t block = 0, before = 0;
  for (size_t i = begin; visits < 100; ++i) {
    const auto one = all[i];
    const auto go = [&](uint32_t to) {
      before = block;
      i = labels.at(to) - 1;
    };
    switch (one[0] & 0xffff) {
      case OpLabel:
        block = one[1];
        visits += block == wanted;
        break;
      case OpPhi:
        for (size_t k = 3; k < one.size(); k += 2) {
          if (one[k + 1] == before) values[one[2]] = values.at(one[k]);
        }
        break;
      case OpIAdd:
        values[one[2]] = values.at(one[3]) + values.at(one[4]);
        break;
      case OpULessThan:
        values[one[2]] = values.at(one[3]) < values.at(one[4]);
        break;
      case OpBranch:
        go(one[1]);
        break;
      case OpBranchConditional:
        go(!values.contains(one[1]) || values.at(one[1]) != 0 ? one[2] : one[3]);
        break;
      case OpReturn:
        return visits;
      default:
        break;
    }
  }
  return visits;
}

}  // namespace

TEST_CASE("a counted loop is walked as often as was asked, whichever way it is left") {
  for (const bool leaves_if_true : {false, true}) {
    for (const bool at_end : {false, true}) {
      CAPTURE(leaves_if_true, at_end);
      const Words words = module_of({{.leaves_if_true = leaves_if_true, .at_end = at_end}});
      const auto loop = main_loop_of(words);
      REQUIRE(loop);
      CHECK(loop->header == 200);
      for (const uint32_t passes : {1u, 2u, 7u}) {
        const Words counted = with_passes(words, *loop, passes);
        CHECK(visits_of(counted, 202) == static_cast<int>(passes));
        CHECK_FALSE(main_loop_of(counted));  // it asks to be unrolled
      }
      if (at_end) {
        CHECK_THROWS_AS(with_passes(words, *loop, 0), Error);
      } else {
        CHECK(visits_of(with_passes(words, *loop, 0), 202) == 0);
      }
    }
  }
}

TEST_CASE("the main loop has a barrier of the workgroup, or is the largest") {
  const LoopShape with{.first = 200}, without{.first = 300, .barrier = 0},
      narrow{.first = 300, .barrier = subgroup};
  CHECK(main_loop_of(module_of({with, narrow}))->header == 200);
  CHECK(main_loop_of(module_of({narrow, with}))->header == 200);
  CHECK(main_loop_of(module_of({{.first = 200, .barrier = 0}, narrow}))->header == 300);
  CHECK_FALSE(main_loop_of(module_of({narrow}))->has_barrier);
  CHECK(main_loop_of(module_of({with}))->has_barrier);
  CHECK(main_loop_of(module_of({{.first = 200, .control = unroll}, without}))->header == 300);
  CHECK_FALSE(main_loop_of(module_of({{.control = unroll}})));
  CHECK_FALSE(main_loop_of(module_of({})));
}

TEST_CASE(
    "a loop in a function that a loop calls is inside; a return or branch before makes it less likely") {
  SpirvBuilder module = begin_module();
  begin_function(module, helper);
  put_loop(module, {.first = 300});
  end_function(module);
  begin_function(module, entry);
  module.op(OpSelectionMerge, {401, 0}).op(OpBranchConditional, {unknown, 400, 401});
  module.op(OpLabel, {400}).op(OpReturn, {}).op(OpLabel, {401});
  module.op(OpSelectionMerge, {403, 0}).op(OpBranchConditional, {unknown, 402, 403}).op(OpLabel, {402});
  module.op(OpSelectionMerge, {405, 0}).op(OpBranchConditional, {fixed, 404, 405}).op(OpLabel, {404});
  put_loop(module, {.first = 200, .barrier = 0, .called = helper});
  module.op(OpBranch, {405}).op(OpLabel, {405}).op(OpBranch, {403}).op(OpLabel, {403});
  end_function(module);
  const auto loop = main_loop_of(module.words());
  REQUIRE(loop);
  CHECK(loop->header == 200);
  CHECK(loop->has_barrier);
  CHECK(loop->inner_loops == 1);
  CHECK(loop->selections == 2);
}

TEST_CASE("every product's and attention's shader for GPUs has a main loop that can be counted") {
  for (const std::string_view name : {"matmul_tiled", "matmul_coopmat", "attention_tiled",
                                      "attention_coopmat", "attention_coopmat_columns", "patch_embed"}) {
    for (const ShaderVariant& shader : all_shaders()) {
      if (shader.shader != name) continue;
      CAPTURE(shader.shader, shader.variant);
      const auto loop = main_loop_of(shader.words);
      REQUIRE(loop);
      CHECK(loop->has_barrier);
      const Words counted = with_passes(shader.words, *loop, 2);
      const Reflection before = reflect(shader.words), after = reflect(counted);
      CHECK(after.bindings.size() == before.bindings.size());
      CHECK(after.constants.size() == before.constants.size());
      CHECK(counted[3] ==
            shader.words[3] + 6);  // ids: three constants and a counter, its successor, a comparison
    }
  }
}

TEST_CASE("members of push constants are replaced by what they are, and nothing else is") {
  enum : uint32_t {
    block = 50,
    other,
    pointer,
    third,
    decimal,
    chain,
    second,
    loaded,
    twice,
    untouched,
    elsewhere
  };
  SpirvBuilder module = begin_module();
  module.op(OpTypeFloat, {decimal, 32}).op(OpConstant, {number, third, 2});
  module.op(OpVariable, {pointer, block, 9}).op(OpVariable, {pointer, other, 12});
  begin_function(module, entry);
  module.op(OpAccessChain, {pointer, chain, block, third}).op(OpLoad, {number, loaded, chain});
  module.op(OpLoad, {number, twice, chain}).op(OpLoad, {decimal, untouched, chain});
  module.op(OpAccessChain, {pointer, second, other, third}).op(OpLoad, {number, elsewhere, second});
  end_function(module);
  const Words words = module.words();
  CHECK(with_push_constants(words, {}) == words);
  CHECK(with_push_constants(words, {{1, 7}, {3, 7}}) == words);

  const Words known = with_push_constants(words, {{2, 41}});
  std::map<uint32_t, uint32_t> values, copies;
  std::vector<uint32_t> loads;
  for (size_t at = 5; at < known.size(); at += known[at] >> 16) {
    const uint32_t opcode = known[at] & 0xffff;
    if (opcode == OpConstant && known[at + 1] == number) values[known[at + 2]] = known[at + 3];
    if (opcode == OpCopyObject) copies[known[at + 2]] = known[at + 3];
    if (opcode == OpLoad) loads.push_back(known[at + 2]);
  }
  REQUIRE(copies.size() == 2);
  CHECK(values.at(copies.at(loaded)) == 41);
  CHECK(copies.at(loaded) == copies.at(twice));
  CHECK(loads == Words{untouched, elsewhere});
  CHECK(known[3] == words[3] + 1);
  CHECK(known.size() == words.size() + 4);
}

TEST_CASE("what is no module, or ends in an instruction, is refused") {
  CHECK_THROWS_AS(main_loop_of(Words{}), Error);
  CHECK_THROWS_AS(main_loop_of(Words{1, 2, 3, 4, 5}), Error);
  Words words = module_of({{}});
  const auto loop = main_loop_of(words);
  CHECK_THROWS_AS(with_passes(words, {.header = 999}, 1), Error);
  words.pop_back();
  words.back() = 9 << 16;
  CHECK_THROWS_AS(main_loop_of(words), Error);
  CHECK_THROWS_AS(with_passes(words, *loop, 1), Error);
}

}  // namespace vitrine::test
