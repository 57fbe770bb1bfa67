// A model's constants, shared by plans that differ in what they need of them.
#include "runtime/graph/weight_store.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <memory>

#include "runtime/graph/executable.h"
#include "runtime/ops/elementwise/binary.h"
#include "tests/support/constants.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

constexpr uint64_t elements = 50;

std::shared_ptr<const Graph> sum_graph() {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {elements});
  const ValueId first = add(*graph, "first", x, graph->constant("a", {elements}));
  graph->output(add(*graph, "second", first, graph->constant("b", {elements})), "y");
  return graph;
}

std::vector<double> run(Executable& executable) {
  const auto x = encode(filled({elements}, DType::f32, 1));
  std::memcpy(executable.input(0).data(), x.data(), x.size());
  executable.run();
  return decode(executable.output(0), DType::f32);
}

TEST_CASE("a plan that reads further behind its constants than an earlier one finds the room") {
  TestDevice& device = test_device();
  RandomConstants constants(3);
  WeightStore weights(*device.pipelines, constants);
  const Plan near = make_plan(sum_graph(), device.device->capabilities());
  Plan far = near;
  far.tail_bytes = near.tail_bytes + 100'000;
  const auto room_behind = [&](const Plan& plan, const PlannedConstant& constant) {
    const BufferSlice found = weights.find(*plan.graph, constant);
    return found.buffer->bytes() - found.offset - found.bytes;
  };

  Executable first(weights, near);
  const uint64_t bytes_before = weights.bytes();
  Executable second(weights, far);
  for (const PlannedConstant& constant : far.constants) CHECK(room_behind(far, constant) >= far.tail_bytes);
  const uint64_t bytes = weights.bytes();
  CHECK(bytes > bytes_before);
  // What is there with enough room is shared, and who came first goes on with what it has.
  weights.load(near);
  weights.load(far);
  CHECK(weights.bytes() == bytes);
  CHECK(run(first) == run(second));
  require_no_validation_messages();
}

}  // namespace
}  // namespace vitrine::test
