// The self-test that vitrine doctor runs: what is right passes, what is wrong is found.
#include "runtime/selftest/self_test.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <set>

#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/lowering.h"
#include "runtime/util/error.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using reference::OpCase;

OpCase sum_case() {
  OpCase c;
  const reference::HostTensor a = reference::random_tensor({5, 67}, DType::f32, 1),
                              b = reference::random_tensor({5, 67}, DType::f32, 2);
  c.label = "a sum";
  c.inputs = {{a}, {b}};
  std::vector<double>& expected = c.expected.emplace_back();
  for (size_t i = 0; i < a.values.size(); ++i) expected.push_back(a.values[i] + b.values[i]);
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{add(graph, "y", ids[0], ids[1])};
  };
  return c;
}

std::optional<std::string> fault(const OpCase& c) {
  return reference::fault_of(*test_device().pipelines, c, reference::graph_of(c), {});
}

// A kernel that runs all but the last row.
Lowered lower_short(const LowerContext& context) {
  Lowered lowered = op_binary.kernels[0].lower(context);
  for (Dispatch& dispatch : lowered.dispatches) {
    uint32_t count;
    std::memcpy(&count, dispatch.params.data(), sizeof count);
    count -= to_u32(context.output(0).shape[-1]);
    std::memcpy(dispatch.params.data(), &count, sizeof count);
  }
  return lowered;
}
// One that takes its first input twice.
Lowered lower_same(const LowerContext& context) {
  Lowered lowered = op_binary.kernels[0].lower(context);
  for (Dispatch& dispatch : lowered.dispatches) dispatch.operands[1] = dispatch.operands[0];
  return lowered;
}
constexpr std::array wrong_kernels{
    KernelDef{"short", Target::any, [](const LowerContext& c) { return op_binary.kernels[0].refuses(c); },
              no_preference, lower_short},
    KernelDef{"same", Target::any, [](const LowerContext& c) { return op_binary.kernels[0].refuses(c); },
              no_preference, lower_same}};
const OpDef op_wrong{"wrong_sum", op_binary.infer, op_binary.flops, wrong_kernels};

}  // namespace

TEST_CASE("self-test: right kernels pass, on this device") {
  TestDevice& device = test_device();
  for (const char* only : {"binary", "layer_norm", "softmax", "attention_rows", "slice", "convert"}) {
    const selftest::SelfTests all(device.device->capabilities(), only);
    CHECK(all.tests().size() + all.untested().size() > 0);
    for (const selftest::SelfTest& test : all.tests()) {
      INFO(test.certificates.front());
      CHECK(selftest::fault_of(*device.pipelines, test) == std::nullopt);
    }
  }
  require_no_validation_messages();
}

TEST_CASE("self-test: a result that isn't the reference's is found") {
  test_device();
  OpCase c = sum_case();
  CHECK(fault(c) == std::nullopt);
  c.expected[0][123] += 0.001;
  CHECK_THAT(fault(c).value_or("nothing"), ContainsSubstring("relative error"));
  c = sum_case();
  c.expected[0].pop_back();
  CHECK(fault(c).has_value());
}

TEST_CASE("self-test: kernels that leave something out or read the wrong thing are found") {
  TestDevice& device = test_device();
  OpCase c = sum_case();
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return graph.add(op_wrong, "y", {ids[0], ids[1]}, {{"function", int64_t{0}}});
  };
  for (const char* kernel : {"short", "same"}) {
    PlanOptions options;
    options.variants["wrong_sum"] = kernel;
    const auto found = reference::fault_of(*device.pipelines, c, reference::graph_of(c), options);
    INFO(kernel << ": " << found.value_or("nothing found"));
    CHECK(found.has_value());
  }
}

TEST_CASE("self-test: on any device every kernel is tested or said not to be, under a name of its own") {
  for (const Capabilities& capabilities : {plain_gpu(), rich_gpu(), software_driver()}) {
    const selftest::SelfTests all(capabilities);
    std::set<std::string> kernels;
    std::set<std::pair<std::string, std::vector<std::string>>> tests;
    for (const selftest::SelfTest& test : all.tests()) {
      CHECK(tests.insert({test.name(), test.certificates}).second);
      CHECK_FALSE(test.cases.empty());
      kernels.insert(std::string(test.op->name) + "=" + std::string(test.candidate.kernel->name));
    }
    for (const selftest::UntestedKernel& kernel : all.untested()) {
      CHECK_FALSE(kernel.reason.empty());
      CHECK(kernels.insert(kernel.name).second);
    }
    size_t there = 0;
    for (const OpDef* op : all_ops()) there += op->kernels.size();
    CHECK(kernels.size() == there);
  }
  CHECK_THROWS_AS(selftest::SelfTests(plain_gpu(), "gemm"), Error);
  CHECK_THROWS_AS(selftest::SelfTests(plain_gpu(), "matmul=fast"), Error);
  CHECK(selftest::SelfTests(plain_gpu(), "matmul=tiled").tests().size() > 5);
}

}  // namespace vitrine::test
