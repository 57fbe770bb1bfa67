// Plans for made-up devices: no GPU is touched.
#include "runtime/graph/plan.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/graph/conversion.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/util/error.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/plan_text.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// Two pre-norm blocks without their attention: norms, matmuls and residuals.
std::shared_ptr<const Graph> residual_stack(uint64_t rows, uint64_t width) {
  auto graph = std::make_shared<Graph>();
  const ValueId gamma = graph->constant("gamma", {width}), beta = graph->constant("beta", {width});
  const ValueId up = graph->constant("up", {4 * width, width}),
                down = graph->constant("down", {width, 4 * width});
  ValueId x = scale(*graph, "scaled", graph->input("x", {rows, width}), 2.0);
  for (int i = 0; i < 2; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    const ValueId normed = layer_norm(*graph, block + ".norm", x, gamma, beta);
    const ValueId hidden = matmul(*graph, block + ".fc1", normed, up, {.activation = Activation::gelu});
    x = matmul(*graph, block + ".fc2", hidden, down, {.residual = x});
  }
  graph->output(layer_norm(*graph, "norm", x, gamma, beta), "y");
  return graph;
}

Capabilities gpu() { return test::plain_gpu(); }
Capabilities cpu() { return test::software_driver(); }

const Plan::Tensor& tensor(const Plan& plan, std::string_view name) {
  const auto at =
      std::find_if(plan.tensors.begin(), plan.tensors.end(), [&](const auto& t) { return t.name == name; });
  REQUIRE(at != plan.tensors.end());
  return *at;
}

TEST_CASE("plan: the same graph, device and options make the same plan") {
  for (const Capabilities& device : {gpu(), cpu()}) {
    const std::string first = test::text_of(make_plan(residual_stack(50, 96), device));
    CHECK(first == test::text_of(make_plan(residual_stack(50, 96), device)));
    CHECK(first != test::text_of(make_plan(residual_stack(51, 96), device)));
  }
}

TEST_CASE("plan: its text names every kind of memory") {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {5, 8});
  const ValueId product = matmul(*graph, "product", x, graph->constant("w", {8, 8}));
  const ValueId sum = add(*graph, "sum", product, graph->state("old", {5, 8}, {"buffer", 64}));
  graph->output(scale(*graph, "half", sum, 0.5), "y");
  graph->store(scale(*graph, "twice", sum, 2), {"buffer", 64});
  PlanOptions options;
  options.fusions = {};
  options.layouts = false;
  const std::string text = test::text_of(make_plan(graph, gpu(), options));
  INFO(text);
  // The product has no bias: nothing is bound there.
  for (const char* range : {" r -", " w arena0@", " r const0+256", " r in0+160", " w out0+160",
                            " r state0+160", " w state0+160"}) {
    CHECK(text.find(range) != std::string::npos);
  }
}

TEST_CASE("plan: a residual's memory is taken over where it dies, and only there") {
  const Plan plan = make_plan(residual_stack(50, 96), gpu());
  CHECK(tensor(plan, "scaled").range == tensor(plan, "blocks.0.fc2").range);
  CHECK(tensor(plan, "blocks.0.fc2").range == tensor(plan, "blocks.1.fc2").range);

  auto graph = std::make_shared<Graph>();
  const ValueId x = scale(*graph, "x2", graph->input("x", {7, 8}), 2.0);
  const ValueId y = matmul(*graph, "y", x, graph->constant("w", {8, 8}), {.residual = x});
  graph->output(add(*graph, "sum", y, y), "out");
  const Plan twice = make_plan(graph, gpu());
  CHECK(tensor(twice, "x2").range.offset != tensor(twice, "y").range.offset);
}

TEST_CASE("plan: without reuse every tensor has its own memory") {
  PlanOptions options;
  options.reuse_memory = false;
  const Plan plan = make_plan(residual_stack(50, 96), gpu(), options);
  for (size_t a = 0; a < plan.tensors.size(); ++a) {
    for (size_t b = a + 1; b < plan.tensors.size(); ++b) {
      const MemoryRange &x = plan.tensors[a].range, &y = plan.tensors[b].range;
      const bool overlap =
          x.index == y.index && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
      CHECK_FALSE(overlap);
    }
  }
  CHECK(plan.arena_bytes() > make_plan(residual_stack(50, 96), gpu()).arena_bytes());
}

TEST_CASE("plan: no two steps between barriers touch the same bytes, one of them writing") {
  for (const Capabilities& device : {gpu(), cpu()}) {
    const Plan plan = make_plan(residual_stack(50, 96), device);
    size_t since = 0;
    for (size_t b = 0; b < plan.steps.size(); ++b) {
      if (plan.steps[b].barrier_before) since = b;
      for (size_t a = since; a < b; ++a) {
        for (size_t i = 0; i < plan.steps[a].ranges.size(); ++i) {
          for (size_t j = 0; j < plan.steps[b].ranges.size(); ++j) {
            const MemoryRange &x = plan.steps[a].ranges[i], &y = plan.steps[b].ranges[j];
            if (x.space != y.space || x.index != y.index || x.space == MemoryRange::Space::nothing) continue;
            if (plan.steps[a].access[i] == 'r' && plan.steps[b].access[j] == 'r') continue;
            CHECK_FALSE((x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes));
          }
        }
      }
    }
  }
}

TEST_CASE("plan: the device decides between kernels, and a wish overrules it") {
  const auto kernel_of = [](const Plan& plan, std::string_view op) {
    for (const Step& step : plan.steps) {
      if (plan.graph->nodes()[step.node].op->name == op) return step.kernel;
    }
    return std::string("none");
  };
  CHECK(kernel_of(make_plan(residual_stack(50, 96), gpu()), "matmul") == "tiled");
  CHECK(kernel_of(make_plan(residual_stack(50, 96), cpu()), "matmul") == "cpu_direct");
  PlanOptions options;
  options.variants = parse_variants("matmul=tiled");
  CHECK(kernel_of(make_plan(residual_stack(50, 96), cpu(), options), "matmul") == "tiled");
  options.variants = parse_variants("matmul=coopmat");
  CHECK_THROWS_AS(make_plan(residual_stack(50, 96), cpu(), options), Error);
}

TEST_CASE("plan: wishes that name nothing are refused") {
  CHECK(parse_variants("").empty());
  CHECK(parse_variants("matmul=tiled,attention=tiled").size() == 2);
  for (const char* wrong : {"matmul", "matmul=", "matmul=fast", "gemm=tiled", "=tiled", "matmul=tiled,x",
                            "matmul=tiled:", "matmul=fast:64x64", "matmul=:64x64"}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_variants(wrong), Error);
  }
}

TEST_CASE("plan: steps are cut into slices by their time") {
  std::vector<Step> steps(10);
  for (size_t i = 0; i < steps.size(); ++i) steps[i].seconds = 0.03;
  CHECK(assign_slices(steps, 0.1) == 4);
  CHECK(steps[2].slice == 0);
  CHECK(steps[3].slice == 1);
  steps[4].seconds = 5;  // longer than a slice can be: it stands alone
  CHECK(assign_slices(steps, 0.1) == 5);
  CHECK(steps[3].slice + 1 == steps[4].slice);
  CHECK(steps[4].slice + 1 == steps[5].slice);
  std::vector<Step> none;
  CHECK(assign_slices(none, 0.1) == 0);
}

TEST_CASE("plan: what a device can't hold is refused by name") {
  Capabilities small = gpu();
  small.max_storage_range = 1 << 16;
  try {
    make_plan(residual_stack(197, 768), small);
    FAIL("a plan was made");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    CHECK(std::string(error.what()).find("65536") != std::string::npos);
  }
  Capabilities narrow = gpu();
  narrow.max_workgroup_count = {1, 1, 1};
  CHECK_THROWS_AS(make_plan(residual_stack(197, 768), narrow), Error);
}

// The message of the Error that planning ends in.
std::string refusal(const std::shared_ptr<const Graph>& graph, const Capabilities& device,
                    const PlanOptions& options = {}) {
  try {
    make_plan(graph, device, options);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    return error.what();
  }
  return "a plan was made";
}

TEST_CASE("plan: what packs a constant keeps to the device's limits, too") {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {4, 4096});
  graph->output(matmul(*graph, "product", x, graph->constant("w", {8, 4096})), "y");
  PlanOptions options;
  options.variants = parse_variants("matmul=cpu_direct");
  REQUIRE(make_plan(graph, cpu(), options).constants.at(0).pack->groups[0] > 16);
  Capabilities narrow = cpu();
  narrow.max_workgroup_count[0] = 16;
  CHECK_THAT(refusal(graph, narrow, options),
             ContainsSubstring("'w' (matmul_cpu_direct_panels) needs") && ContainsSubstring("takes 1 to 16"));
}

TEST_CASE("plan: what converts a constant on its way keeps to the device's limits, too") {
  Capabilities narrow = test::rich_gpu();
  narrow.max_workgroup_count = {4, 2, 1};
  CHECK(lower_conversion(DType::f32, DType::f16, 8 * 256, narrow).dispatches.size() == 1);
  try {
    lower_conversion(DType::f32, DType::f16, 8 * 256 + 1, narrow);
    FAIL("it was lowered");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("can't convert f32 to f16") && ContainsSubstring("axis 1"));
  }
}

TEST_CASE("plan: a state that begins where no descriptor can is read by address, or refused by name") {
  const auto norm_at = [](uint64_t first) {
    auto graph = std::make_shared<Graph>();
    const ValueId x = graph->state("x", {8, 16}, {"buffer", first});
    const ValueId gamma = graph->constant("gamma", {16}), beta = graph->constant("beta", {16});
    graph->output(layer_norm(*graph, "norm", x, gamma, beta), "y");
    return graph;
  };
  Capabilities strict = gpu();
  strict.storage_alignment = 256;
  CHECK_THAT(refusal(norm_at(8), strict),
             ContainsSubstring("'x' begins at byte 32 of 'buffer'") && ContainsSubstring("multiples of 256"));
  CHECK(make_plan(norm_at(64), strict).steps.size() == 1);
  strict = cpu();
  strict.storage_alignment = 256;
  const Plan plan = make_plan(norm_at(8), strict);
  CHECK(plan.steps.at(0).dispatch.shader->bind == BindMode::addresses);
}

TEST_CASE("plan: memory stays near the largest live set for a real model's shapes") {
  const Plan plan = make_plan(residual_stack(8 * 197, 768), gpu());
  CHECK(static_cast<double>(plan.arena_bytes()) <= 1.15 * static_cast<double>(plan.largest_live_set));
}

TEST_CASE("plan: constants of equal layout are shared, in whatever order they are used") {
  const Plan plan = make_plan(residual_stack(50, 96), cpu());
  const auto count =
      std::count_if(plan.constants.begin(), plan.constants.end(),
                    [&](const PlannedConstant& c) { return plan.graph->value(c.value).name == "up"; });
  CHECK(count == 1);
}

}  // namespace
}  // namespace vitrine
