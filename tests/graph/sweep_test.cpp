// Measuring candidates on the device, and telling right results from wrong ones.
#include "runtime/tune/sweep.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "runtime/check/op_case.h"
#include "runtime/check/reference.h"
#include "runtime/check/sample.h"
#include "runtime/graph/executable.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/elementwise/activation_gradient.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/moves/sum_rows.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/ops/norms/softmax_gradient.h"
#include "runtime/ops/pictures/resample.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/weight_gradient.h"
#include "runtime/ops/tokens/patch_embed.h"
#include "runtime/ops/tokens/pool.h"
#include "shaders/lib/step_state.h"
#include "tests/support/constants.h"
#include "tests/support/plan_text.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

// Every operator that has a sample, in both storage types where `dtype` says, and one that has none.
std::shared_ptr<const Graph> small_graph(DType dtype) {
  auto graph = std::make_shared<Graph>();
  const auto constant = [&](const char* name, Shape shape, DType type = DType::f32) {
    return graph->constant(name, shape, type);
  };
  ValueId x = patch_embed(*graph, "patches", graph->input("image", {2, 3, 20, 24}),
                          constant("patch_weight", {36, 3, 4, 4}, dtype), constant("patch_bias", {36}),
                          {.patch_height = 4, .patch_width = 4});
  const ValueId gamma = constant("gamma", {36}), beta = constant("beta", {36});
  for (int block = 0; block < 2; ++block) {
    const std::string name = "blocks." + std::to_string(block);
    const ValueId normed = layer_norm(*graph, name + ".norm", x, gamma, beta, {.out = dtype});
    const ValueId qkv =
        matmul(*graph, name + ".qkv", normed, constant((name + ".w").c_str(), {108, 36}, dtype));
    const ValueId mixed = attention(*graph, name + ".attention", qkv, qkv, qkv,
                                    {.heads = 3, .key_width = 12, .k_offset = 36, .v_offset = 72})
                              .out;
    x = matmul(*graph, name + ".proj", mixed, constant((name + ".p").c_str(), {36, 36}, dtype),
               {.bias = constant((name + ".b").c_str(), {36}), .residual = x, .out = DType::f32});
  }
  graph->output(softmax(*graph, "softmax", pool_mean(*graph, "pool", x, 0, 30)), "y");
  return graph;
}

// Operators whose candidates are compared with each other, at sizes of many rows.
std::shared_ptr<const Graph> graph_without_samples() {
  auto graph = std::make_shared<Graph>();
  const ValueId dy = graph->input("dy", {1301, 68}, DType::f32),
                x = graph->input("x", {1301, 68}, DType::f32);
  graph->output(softmax_gradient(*graph, "softmax", dy, x), "softmax");
  graph->output(activation_gradient(*graph, "gelu", dy, x, Activation::gelu), "gelu");
  graph->output(sum_rows(*graph, "sum", x), "sum");
  graph->output(transpose(*graph, "transpose", x), "transpose");
  graph->output(weight_gradient(*graph, "weight", dy, x, {.groups = 17, .bias = false}).weight, "weight");
  return graph;
}

// Operators that add like `binary`, wrongly in one kernel, which comes first.
template <uint64_t largest_right>
Lowered lower_short(const LowerContext& context) {
  Lowered lowered = op_binary.kernels[0].lower(context);
  if (context.output(0).shape.elements() <= largest_right) return lowered;
  uint32_t count;  // the parameters begin with it
  std::memcpy(&count, lowered.dispatches[0].params.data(), sizeof count);
  count -= 1;
  std::memcpy(lowered.dispatches[0].params.data(), &count, sizeof count);
  return lowered;
}
std::optional<std::string> refuses_as_binary(const LowerContext& context) {
  return op_binary.kernels[0].refuses(context);
}
constexpr KernelDef right_kernel{"right", Target::any, refuses_as_binary, no_preference,
                                 [](const LowerContext& c) { return op_binary.kernels[0].lower(c); }};
template <const OpDef& op>
std::vector<reference::OpCase> sum_cases() {
  const HostTensor a = random_tensor({5, 67}, DType::f32, 1), b = random_tensor({5, 67}, DType::f32, 2);
  return {reference::one_result("a sum", {{a}, {b}}, reference::add(a.values, b.values),
                                [](Graph& graph, std::span<const ValueId> ids) {
                                  return graph.add(op, "y", {ids[0], ids[1]}, {{"function", int64_t{0}}})[0];
                                })};
}
constexpr KernelDef always_short[] = {
    {"short", Target::any, refuses_as_binary, no_preference, lower_short<0>}, right_kernel};
constexpr KernelDef short_when_large[] = {
    right_kernel, {"short", Target::any, refuses_as_binary, no_preference, lower_short<1000>}};
extern const OpDef op_short_sum, op_large_sum;
const OpDef op_short_sum{"short_sum", op_binary.infer, op_binary.flops, always_short,
                         sum_cases<op_short_sum>};
const OpDef op_large_sum{"large_sum", op_binary.infer, op_binary.flops, short_when_large,
                         sum_cases<op_large_sum>};

SweepResult sweep_of(const OpDef& op) {
  auto graph = std::make_shared<Graph>();
  const ValueId a = graph->input("a", {37, 41}, DType::f32), b = graph->input("b", {37, 41}, DType::f32);
  graph->output(graph->add(op, "y", {a, b}, {{"function", int64_t{0}}})[0], "y");
  const std::shared_ptr<const Graph> made = graph;
  return sweep(*test_device().pipelines, std::array{made}, {.seconds = 600});
}

std::vector<double> result_of(const std::shared_ptr<const Graph>& graph, const PlanOptions& options) {
  TestDevice& device = test_device();
  RandomConstants constants(3);
  WeightStore weights(*device.pipelines, constants);
  Executable executable(weights, make_plan(graph, device.device->capabilities(), options));
  const auto image = encode(random_tensor({2, 3, 20, 24}, DType::f32, 1));
  std::memcpy(executable.input(0).data(), image.data(), image.size());
  executable.run();
  return decode(executable.output(0), DType::f32);
}

}  // namespace

TEST_CASE("sweep: what it finds runs, and gives the same result") {
  TestDevice& device = test_device();
  const Capabilities& capabilities = device.device->capabilities();
  for (const DType dtype : {DType::f32, DType::f16}) {
    if (!stores(dtype)) continue;
    const std::shared_ptr<const Graph> graph = small_graph(dtype);
    size_t told = 0;
    SweepOptions options;
    // Compiling all candidates once is enough, and where that takes many times as long, less.
    const bool all =
        dtype == DType::f32 && !capabilities.loops_gather && !compiles_for_gpus_on_a_cpu() && !takes_turns();
    options.seconds = all ? 600 : 1;
    options.progress = [&](std::string_view, double used) {
      CHECK(used >= 0);
      ++told;
    };
    const SweepResult result = sweep(*device.pipelines, std::array{graph}, options);

    uint64_t nodes = 0;
    for (const MeasuredNode& node : result.nodes) {
      INFO(node.key);
      nodes += node.count;
      CHECK(node.heuristic_seconds() > 0);
      CHECK(node.best_seconds() <= node.heuristic_seconds());
      const bool tuned = result.found.tuned.contains(node.key);
      if (all) CHECK(tuned == (node.candidates > 1));
      if (all && tuned) CHECK(node.measured.size() == node.candidates);
      if (tuned) CHECK(node.measured.size() > 1);
      for (const MeasuredCandidate& candidate : node.measured) {
        INFO(candidate.name);
        CHECK(candidate.fault.empty());
      }
    }
    CHECK(nodes == graph->nodes().size());
    CHECK(told > result.nodes.size());
    // Equal nodes of the two blocks are measured once.
    const auto twice = std::ranges::count(result.nodes, 2, &MeasuredNode::count);
    CHECK(twice == 4);
    CHECK(result.best_seconds() <= result.heuristic_seconds());
    for (const auto& [certificate, fault] : result.found.certificates) {
      INFO(certificate);
      CHECK(fault.empty());
    }

    PlanOptions tuned;
    tuned.known = std::make_shared<KernelChoices>(result.found);
    CHECK_THAT(text_of(make_plan(graph, capabilities, tuned)), ContainsSubstring("by the table"));
    CHECK(relative_error(result_of(graph, tuned), result_of(graph, {})) <=
          (dtype == DType::f16 ? 2e-3 : 2e-6));
  }
  require_no_validation_messages();
}

TEST_CASE("sweep: time that is up ends it, with what was measured by then") {
  TestDevice& device = test_device();
  SweepOptions options;
  options.seconds = 1e-9;
  const SweepResult result = sweep(*device.pipelines, std::array{small_graph(DType::f32)}, options);
  CHECK(result.found.tuned.empty());
  CHECK(result.heuristic_seconds() > 0);
  CHECK(result.best_seconds() == result.heuristic_seconds());
}

TEST_CASE("sweep: a node leaves the others their part of the time") {
  TestDevice& device = test_device();
  auto graph = std::make_shared<Graph>();
  for (const uint64_t rows : {401, 402}) {
    const std::string name = std::to_string(rows);
    const ValueId x = graph->input("x" + name, {rows, 96}, DType::f32);
    graph->output(matmul(*graph, name, x, graph->constant("w" + name, {96, 96}, DType::f32)), name);
  }
  const std::shared_ptr<const Graph> made = graph;
  const size_t candidates =
      candidates_of(LowerContext(*made, made->nodes().front(), device.device->capabilities())).size();
  constexpr size_t enough_to_share = 10;
  if (candidates < enough_to_share) SKIP("this device has fewer candidates for a product");
  // A clock that goes on at every look: as much time as one of the two has candidates.
  double seconds = 0;
  SweepOptions options{.seconds = static_cast<double>(candidates)};
  options.clock = [&] { return seconds += 0.5; };
  const SweepResult result = sweep(*device.pipelines, std::array{made}, options);
  REQUIRE(result.nodes.size() == 2);
  for (const MeasuredNode& node : result.nodes) {
    CHECK(node.measured.size() > 1);
    CHECK(node.measured.size() < node.candidates);
  }
}

TEST_CASE("sweep: what failed before is left out") {
  TestDevice& device = test_device();
  const std::shared_ptr<const Graph> graph = small_graph(DType::f32);
  const auto node = std::ranges::find(graph->nodes(), &op_softmax, &Node::op);
  const LowerContext context(*graph, *node, device.device->capabilities());
  const std::vector<Candidate> candidates = candidates_of(context);
  SweepOptions options;
  for (const std::string& key : certificate_keys(op_softmax, candidates[0], lower_as(context, candidates[0])))
    options.known.certificates[key] = "made up";
  if (candidates.size() < 2) return;
  options.seconds = 1e-9;
  for (const MeasuredNode& measured : sweep(*device.pipelines, std::array{graph}, options).nodes) {
    if (measured.name == "softmax") CHECK(measured.measured.front().name == candidates[1].name());
  }
}

TEST_CASE("sweep: a wrong result is found by the sample") {
  TestDevice& device = test_device();
  const std::shared_ptr<const Graph> graph = small_graph(DType::f32);
  for (const Node& node : graph->nodes()) {
    CHECK((node.op->sample == nullptr) == (node.name == "pool"));
    if (!node.op->sample) continue;
    reference::LoneNode lone(*graph, node);
    const std::vector<reference::Sample> samples = node.op->sample(lone);
    INFO(node.name);
    WeightStore weights(*device.pipelines, lone);
    Executable executable(weights, make_plan(lone.graph(), device.device->capabilities()));
    for (size_t i = 0; i < executable.plan().inputs.size(); ++i)
      std::ranges::copy(lone.bytes(executable.plan().inputs[i]), executable.input(i).begin());
    executable.run();
    const auto bytes = executable.output(0);
    std::vector<std::byte> output(bytes.begin(), bytes.end());
    const reference::Sample& sample = samples[0];
    CHECK_FALSE(reference::fault_in(sample, DType::f32, output).has_value());
    for (const uint64_t element : {sample.elements.front(), sample.elements.back()}) {
      std::vector<std::byte> wrong = output;
      float value;
      std::memcpy(&value, &wrong[element * sizeof value], sizeof value);
      value = value * 1.01f + 0.01f;
      std::memcpy(&wrong[element * sizeof value], &value, sizeof value);
      CHECK(reference::fault_in(sample, DType::f32, wrong).has_value());
    }
  }
}

TEST_CASE("sweep: operators without a sample are tuned, too") {
  TestDevice& device = test_device();
  const SweepResult result = sweep(*device.pipelines, std::array{graph_without_samples()}, {.seconds = 600});
  CHECK(result.nodes.size() == 5);
  for (const MeasuredNode& node : result.nodes) {
    INFO(node.key);
    CHECK(node.measured.size() == node.candidates);
    CHECK(result.found.tuned.contains(node.key) == (node.candidates > 1));
    for (const MeasuredCandidate& candidate : node.measured) {
      INFO(candidate.name << ": " << candidate.fault);
      CHECK(candidate.fault.empty());
    }
  }
  if (device.device->capabilities().supports(Need::addresses | Need::int64)) {
    CHECK_FALSE(result.found.tuned.empty());
  } else {
    leave_out("without addresses and int64 the device has one kernel for each of these operators");
  }
  require_no_validation_messages();
}

TEST_CASE("sweep: a candidate that fails its operator's cases gets a certificate, and the next is taken") {
  test_device();
  const SweepResult result = sweep_of(op_short_sum);
  const std::vector<MeasuredCandidate>& measured = result.nodes.at(0).measured;
  REQUIRE(measured.size() == 2);
  CHECK_THAT(measured[0].fault, ContainsSubstring("a sum: "));
  CHECK(measured[1].fault.empty());
  CHECK(result.found.tuned.at(result.nodes[0].key) == "right");
  for (const auto& [key, fault] : result.found.certificates)
    CHECK(fault.empty() == key.starts_with("short_sum=right"));
}

TEST_CASE("sweep: a candidate that is right on its cases and differs on the node is passed over") {
  test_device();
  const SweepResult result = sweep_of(op_large_sum);
  const std::vector<MeasuredCandidate>& measured = result.nodes.at(0).measured;
  REQUIRE(measured.size() == 2);
  CHECK(measured[0].fault.empty());
  CHECK_THAT(measured[1].fault, ContainsSubstring("differs from the first candidate"));
  CHECK(result.found.tuned.at(result.nodes[0].key) == "right");
  for (const auto& [key, fault] : result.found.certificates) CHECK(fault.empty());
}

TEST_CASE("sweep: made-up inputs that lead to nothing prove nothing") {
  test_device();
  // A table of zeros says that there are no pictures.
  auto graph = std::make_shared<Graph>();
  const ValueId pixels = graph->input("pixels", {100}, DType::u32),
                table = graph->input("table", {100}, DType::u32);
  graph->output(resample_rows(*graph, "rows", pixels, table, {.blocks = 2, .width = 7}), "y");
  const std::shared_ptr<const Graph> made = graph;
  const SweepResult result = sweep(*test_device().pipelines, std::array{made}, {.seconds = 600});
  CHECK(result.found.tuned.empty());
  for (const MeasuredCandidate& candidate : result.nodes.at(0).measured)
    CHECK_THAT(candidate.fault, ContainsSubstring("the same everywhere"));
}

TEST_CASE("sweep: the sample of attention with dropout drops what the device drops") {
  auto graph = std::make_shared<Graph>();
  const ValueId qkv = graph->input("qkv", {2, 19, 72}, DType::f32),
                step = graph->input("step", {VITRINE_STEP_WORDS}, DType::u32);
  const AttentionResult made = attention(*graph, "y", qkv, qkv, qkv,
                                         {.heads = 2,
                                          .key_width = 12,
                                          .k_offset = 24,
                                          .v_offset = 48,
                                          .store_lse = true,
                                          .drop_rate = 0.4,
                                          .drop_stream = 3,
                                          .step = step});
  graph->output(made.out, "out");
  graph->output(made.lse, "lse");
  const std::shared_ptr<const Graph> lone = graph;
  const SweepResult result = sweep(*test_device().pipelines, std::array{lone}, {.seconds = 1});
  const MeasuredNode& node = result.nodes.at(0);
  CHECK_FALSE(node.measured.empty());
  for (const MeasuredCandidate& candidate : node.measured) CHECK(candidate.fault.empty());
}

}  // namespace vitrine::test
