// What fusion changes in the results: nothing but rounding.
#include "runtime/graph/fusion.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <functional>

#include "runtime/graph/executable.h"
#include "runtime/ops/binary.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/unary.h"
#include "tests/support/constants.h"
#include "tests/support/reference.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

struct Outcome {
  std::vector<std::byte> bytes;
  std::vector<double> values;
  Plan plan;
};

Outcome run(const std::shared_ptr<const Graph>& graph, const FusionSet& fusions, const HostTensor& x) {
  TestDevice& device = test_device();
  PlanOptions options;
  options.fusions = fusions;
  options.guard_bytes = 512;
  RandomConstants constants(3);
  WeightStore weights(*device.pipelines, constants);
  Executable executable(weights, make_plan(graph, device.device->capabilities(), options));
  const auto bytes = encode(x);
  std::memcpy(executable.input(0).data(), bytes.data(), bytes.size());
  executable.fill_memory(0x7fcd7fcd);  // NaN
  executable.run();
  const auto out = executable.output(0);
  require_no_validation_messages();
  return {{out.begin(), out.end()}, decode(out, DType::f32), executable.plan()};
}

TEST_CASE("a linear layer written in plain operators is computed as one product, and as several") {
  const HostTensor x = random_tensor({2, 13, 24}, DType::f32, 1);
  const Shape shape{2, 13, 40};
  for (const Activation activation : {Activation::gelu, Activation::gelu_tanh, Activation::gelu_quick,
                                      Activation::silu, Activation::tanh}) {
    auto graph = std::make_shared<Graph>();
    const ValueId in = graph->input("x", x.shape);
    const ValueId stream = matmul(*graph, "stream", in, graph->constant("wr", {40, 24}));
    ValueId y = matmul(*graph, "fc", in, graph->constant("w", {40, 24}));
    y = add(*graph, "fc.b", y, graph->constant("b", {40}));
    y = activate(*graph, "fc.a", y, activation);
    y = multiply(*graph, "fc.s", y, graph->constant("s", {40}));
    graph->output(add(*graph, "fc.r", stream, y), "y");

    const RandomConstants constants(3);
    const auto constant = [&](const char* name, const Shape& s) {
      return constants.tensor(name, s, DType::f32).values;
    };
    const auto w = constant("w", {40, 24}), wr = constant("wr", {40, 24}), b = constant("b", {40}),
               s = constant("s", {40});
    std::vector<double> expected;
    for (uint64_t row = 0; row < shape.rows(); ++row) {
      for (uint64_t n = 0; n < 40; ++n) {
        double sum = b[n], residual = 0;
        for (uint64_t k = 0; k < 24; ++k) {
          sum += x.values[row * 24 + k] * w[n * 24 + k];
          residual += x.values[row * 24 + k] * wr[n * 24 + k];
        }
        expected.push_back(residual + reference::activate(activation, sum) * s[n]);
      }
    }
    INFO(name_of(activation));
    const Outcome all = run(graph, all_fusions(), x), none = run(graph, {}, x);
    CHECK(all.plan.graph->nodes().size() == 2);
    CHECK(none.plan.graph->nodes().size() == 6);
    CHECK(relative_error(all.values, expected) < 2e-6);
    CHECK(relative_error(none.values, expected) < 2e-6);
  }
}

}  // namespace
}  // namespace vitrine::test
