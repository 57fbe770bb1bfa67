#include "runtime/ops/training/count_update.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/util/error.h"
#include "shaders/lib/step_state.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

// Several in a row, of which some have a scale of NaN. Each step's words know of the updates for certain that
// were made two steps before it.
test::OpCase several(const std::vector<bool>& made) {
  test::OpCase result;
  result.label = std::to_string(made.size()) + " updates";
  result.exact = result.allow_nonfinite = true;
  uint32_t updates = 7;
  std::vector<uint32_t> before;  // each of them
  result.inputs = {{test::filled({1}, DType::u32, updates)}};
  for (size_t i = 0; i < made.size(); ++i) {
    before.push_back(updates);
    const uint32_t certain = i == 0 ? updates : before[i - 1];
    test::HostTensor step = test::filled({VITRINE_STEP_WORDS}, DType::u32, 0);
    for (uint32_t w = 0; w < VITRINE_STEP_WORDS; ++w) step.values[w] = 1000.0 * (i + 1) + w;
    step.values[VITRINE_STEP_UPDATES] = certain;
    for (uint32_t c = 0; c < VITRINE_STEP_CANDIDATE_COUNT; ++c) {
      step.values[VITRINE_STEP_CANDIDATES + 2 * c] = 0x3f800000 + certain + c;
      step.values[VITRINE_STEP_CANDIDATES + 2 * c + 1] = 0x40000000 + certain + c;
    }
    test::Results::value_type expected = step.values;
    expected[VITRINE_STEP_MOMENT1] = 0x3f800000 + updates;
    expected[VITRINE_STEP_MOMENT2] = 0x40000000 + updates;
    result.expected.push_back(std::move(expected));
    result.inputs.push_back({std::move(step)});
    const double scale = made[i] ? 0.25 : std::numeric_limits<double>::quiet_NaN();
    result.inputs.push_back({{{2}, DType::f32, {scale, 4}}});
    updates += made[i];
  }
  result.expected.push_back({static_cast<double>(updates)});
  result.build = [](Graph& graph, std::span<const ValueId> ids) {
    std::vector<ValueId> outputs;
    ValueId number = ids[0];
    for (size_t i = 1; i < ids.size(); i += 2) {
      const CountedUpdate counted =
          count_update(graph, "count" + std::to_string(i), ids[i], ids[i + 1], number);
      outputs.push_back(counted.step);
      number = counted.updates;
    }
    outputs.push_back(number);
    return outputs;
  };
  return result;
}

TEST_CASE("count_update counts what is made, and gives each update its own corrections") {
  for (const std::vector<bool>& made : {std::vector<bool>{true},
                                        {false},
                                        {true, true, true},
                                        {true, false, true, false, false, true},
                                        {false, false, false}}) {
    test::check_op(op_count_update, several(made));
  }
}

TEST_CASE("count_update takes a scale for one only where it is NaN") {
  for (const double scale : {0.0, -1.0, 1e-45, 3e38, std::numeric_limits<double>::infinity()}) {
    test::OpCase one = several({true});
    one.label += ", scale " + std::to_string(scale);
    one.inputs[2].tensor.values[0] = test::round_to(DType::f32, scale);
    test::check_op(op_count_update, one);
  }
}

TEST_CASE("count_update refuses what does not fit") {
  Graph graph;
  const ValueId step = graph.input("step", {VITRINE_STEP_WORDS}, DType::u32),
                scale = graph.input("scale", {2}), updates = graph.input("updates", {1}, DType::u32);
  CHECK_THROWS_AS(count_update(graph, "c", updates, scale, updates), Error);
  CHECK_THROWS_AS(count_update(graph, "c", step, updates, updates), Error);
  CHECK_THROWS_AS(count_update(graph, "c", step, scale, scale), Error);
  CHECK_THROWS_AS(count_update(graph, "c", step, scale, step), Error);
  CHECK_NOTHROW(count_update(graph, "c", step, scale, updates));
}

}  // namespace
}  // namespace vitrine
