// A loop that is traced gives its bits, and leaves the executable as it was.
#include "runtime/graph/trace/traced_loop.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <stdexcept>

#include "runtime/ops/products/matmul.h"
#include "tests/support/constants.h"
#include "tests/support/op_test.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

struct Looped {
  RandomConstants constants{3};
  WeightStore weights;
  std::unique_ptr<Executable> executable;

  Looped() : weights(*test_device().pipelines, constants) {
    auto graph = std::make_shared<Graph>();
    ValueId x = graph->input("x", {19, 48});
    for (const std::string name : {"first", "second", "third"})
      x = matmul(*graph, name, x, graph->constant(name + ".weight", {48, 48}),
                 {.activation = Activation::tanh});
    graph->output(x, "y");
    // A submission a product.
    executable = std::make_unique<Executable>(
        weights, make_plan(graph, test_device().device->capabilities(),
                           {.fusions = {}, .layouts = false, .slice_seconds = 1e-9}));
  }
  void fill(uint64_t seed, uint32_t set) {
    const auto bytes = encode(random_tensor({19, 48}, DType::f32, seed));
    std::memcpy(executable->input(0, set).data(), bytes.data(), bytes.size());
  }
  std::vector<std::byte> read(uint32_t set) const {
    const auto bytes = executable->output(0, set);
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::byte> run(uint64_t seed) {
    fill(seed, 0);
    executable->run();
    return read(0);
  }
};

}  // namespace

TEST_CASE("a traced loop runs on each batch in turn, and its executable goes on as before") {
  Looped looped;
  std::vector<std::vector<std::byte>> expected, got;
  for (uint64_t seed = 0; seed < 8; ++seed) expected.push_back(looped.run(seed));
  REQUIRE(expected[0] != expected[1]);
  uint64_t filled = 0;
  const auto fill = [&](uint32_t set) { looped.fill(filled++, set); };
  const auto read = [&](uint32_t set) { got.push_back(looped.read(set)); };
  {
    looped.fill(1, 1);
    looped.executable->submit(1);  // what is under way ends first
    TracedLoop loop(*looped.executable);
    const LoopTrace three = loop.run(3, fill, read), five = loop.run(5, fill, read);
    for (const auto& [trace, runs] : {std::pair{&three, 3u}, {&five, 5u}}) {
      CHECK(std::ranges::count(trace->spans, "run", &TraceSpan::name) == runs);
      CHECK(std::ranges::count(trace->spans, "submit", &TraceSpan::name) == runs);
      CHECK_FALSE(trace->clocks.empty());
      // Each node's dispatches, by name and operator, in every run.
      if (test_device().device->capabilities().timestamp_valid_bits == 0) continue;
      for (const char* name : {"first", "second", "third"}) {
        for (uint64_t run = 0; run < runs; ++run) {
          CHECK(std::ranges::any_of(trace->spans, [&](const TraceSpan& span) {
            return span.name == name && span.operator_name == "matmul" && span.run == run &&
                   span.end > span.begin;
          }));
        }
      }
    }
  }
  CHECK(got == expected);
  CHECK(looped.run(5) == expected[5]);
  require_no_validation_messages();
}

TEST_CASE("a traced loop that ends early leaves an executable that runs") {
  Looped looped;
  const std::vector<std::byte> expected = looped.run(5);
  uint64_t filled = 0;
  const auto fill = [&](uint32_t set) {
    if (filled == 3) throw std::runtime_error("no more");
    looped.fill(filled++, set);
  };
  {
    TracedLoop loop(*looped.executable);
    CHECK_THROWS_AS(loop.run(6, fill, [](uint32_t) {}), std::runtime_error);
  }
  CHECK(looped.run(5) == expected);
  require_no_validation_messages();
}

}  // namespace vitrine::test
