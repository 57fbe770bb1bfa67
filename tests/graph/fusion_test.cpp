// What fusion changes in the results: nothing but rounding, and where only the layout changes, no bit.
#include "runtime/graph/fusion.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "runtime/graph/executable.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/products/matmul.h"
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

struct Wishes {
  std::string product = {};  // the kernel of matrix products; empty: the device's choice
  bool layouts = true;
};

Outcome run(const std::shared_ptr<const Graph>& graph, const FusionSet& fusions, const HostTensor& x,
            const Wishes& wishes = {}) {
  TestDevice& device = test_device();
  PlanOptions options;
  if (!wishes.product.empty()) options.variants["matmul"] = wishes.product;
  options.fusions = fusions;
  options.layouts = wishes.layouts;
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

// A pre-norm block as a model has it.
std::shared_ptr<const Graph> block(const Shape& shape, DType dtype, uint64_t heads) {
  auto graph = std::make_shared<Graph>();
  Graph& g = *graph;
  const uint64_t d = shape[-1];
  const ValueId x = g.input("x", shape);
  const auto norm = [&](const char* name, ValueId v) {
    return layer_norm(g, name, v, g.constant(std::string(name) + ".g", {d}),
                      g.constant(std::string(name) + ".b", {d}), {.out = dtype});
  };
  const auto weight = [&](const char* name, uint64_t n, uint64_t k) {
    return g.constant(name, {n, k}, dtype);
  };
  const ValueId qkv = matmul(g, "qkv", norm("norm1", x), weight("wqkv", 3 * d, d));
  const ValueId attended =
      attention(g, "attend", qkv, qkv, qkv,
                {.heads = heads, .key_width = d / heads, .k_offset = d, .v_offset = 2 * d})
          .out;
  const ValueId middle =
      matmul(g, "proj", attended, weight("wproj", d, d), {.residual = x, .out = DType::f32});
  const ValueId hidden = matmul(g, "fc1", norm("norm2", middle), weight("w1", 4 * d, d),
                                {.bias = g.constant("b1", {4 * d}), .activation = Activation::gelu});
  g.output(matmul(g, "fc2", hidden, weight("w2", d, 4 * d), {.residual = middle, .out = DType::f32}), "y");
  return graph;
}

TEST_CASE("tensors that lie as their reader likes them give the same bits as rows") {
  struct Case {
    Shape shape;
    uint64_t heads;
    size_t laid_out;  // where the products are those of a CPU
  };
  // Heads of 16, 32, 24 and 64 values; 60 is no multiple of a step of a product, but 4 times 60 is.
  for (const Case& c : {Case{{1, 1, 48}, 3, 4}, Case{{1, 17, 48}, 3, 4}, Case{{2, 50, 64}, 2, 4},
                        Case{{3, 67, 48}, 2, 4}, Case{{1, 197, 192}, 3, 4}, Case{{2, 19, 60}, 3, 1}}) {
    const auto graph = block(c.shape, DType::f32, c.heads);
    const HostTensor x = random_tensor(c.shape, DType::f32, 7);
    // Small products have a kernel of their own, which reads rows.
    const Capabilities& device = test_device().device->capabilities();
    const std::string product = !has_cpu_kernels() ? "" : device.loops_gather ? "cpu_chunks" : "cpu_direct";
    const Outcome blocks = run(graph, all_fusions(), x, {product}),
                  rows = run(graph, all_fusions(), x, {product, false});
    const Outcome none = run(graph, {}, x, {product, false});
    INFO(c.shape.to_string() << ", " << c.heads << " heads");
    CHECK(rows.plan.laid_out.empty());
    if (!product.empty()) {
      CHECK(blocks.plan.laid_out.size() == c.laid_out);
      CHECK(blocks.plan.steps.size() + c.laid_out == rows.plan.steps.size());
    }
    CHECK(blocks.bytes == rows.bytes);
    CHECK(relative_error(none.values, rows.values) < 2e-6);
    CHECK(none.plan.steps.size() > rows.plan.steps.size());
  }
}

TEST_CASE("in f16, tensors in blocks hold what f16 would hold, bit for bit") {
  skip_without_f16();
  for (const Shape& shape : {Shape{1, 17, 48}, Shape{2, 50, 96}}) {
    const HostTensor x = random_tensor(shape, DType::f32, 7);
    const auto graph = block(shape, DType::f16, 3);
    const Outcome blocks = run(graph, all_fusions(), x),
                  rows = run(graph, all_fusions(), x, {.layouts = false}),
                  none = run(graph, {}, x, {.layouts = false});
    INFO(shape.to_string());
    CHECK(blocks.bytes == rows.bytes);
    CHECK(relative_error(none.values, rows.values) < 2e-3);
  }
}

TEST_CASE("in f16, what is too large for it is infinite in blocks, too") {
  skip_without_f16();
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {1, 19, 32}, DType::f16);
  const ValueId hidden = matmul(*graph, "a", x, graph->constant("wa", {48, 32}, DType::f16));
  graph->output(matmul(*graph, "b", hidden, graph->constant("wb", {32, 48}, DType::f16), {.out = DType::f32}),
                "y");
  HostTensor in = random_tensor({1, 19, 32}, DType::f16, 1, 50000, 60000);
  const Outcome blocks = run(graph, all_fusions(), in),
                rows = run(graph, all_fusions(), in, {.layouts = false});
  const auto overflowed = [](const Outcome& outcome) {
    return std::ranges::any_of(outcome.values, [](double value) { return !std::isfinite(value); });
  };
  CHECK(overflowed(rows));
  CHECK(overflowed(blocks));
}

TEST_CASE("a tensor that two read, or that goes out, lies in rows") {
  for (const bool goes_out : {false, true}) {
    auto graph = std::make_shared<Graph>();
    const ValueId x = graph->input("x", {1, 20, 32});
    const ValueId hidden = matmul(*graph, "a", x, graph->constant("wa", {48, 32}));
    graph->output(matmul(*graph, "b", hidden, graph->constant("wb", {32, 48})), "y");
    if (goes_out) {
      graph->output(hidden, "tap");
    } else {
      graph->output(scale(*graph, "reader", hidden, 2), "tap");
    }
    const HostTensor in = random_tensor({1, 20, 32}, DType::f32, 1);
    CHECK(run(graph, all_fusions(), in).plan.laid_out.empty());
  }
}

}  // namespace
}  // namespace vitrine::test
