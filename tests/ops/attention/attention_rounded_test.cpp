// Attention of f32 that matrix units make of what f16 keeps of it: a training's, forwards and backwards.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/autodiff.h"
#include "runtime/graph/kernel_choice.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_gradient.h"
#include "runtime/ops/attention/attention_gradient_kernels.h"
#include "runtime/util/error.h"
#include "shaders/lib/step_state.h"
#include "tests/support/made_up/made_up_device.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

// What is multiplied is exact in f16 but for weights and their gradients, each of which is off by at most
// 2^-11 of itself and by 2^-12.3 in the mean. A sum of them is off by about the mean of its terms' sizes.
constexpr double rounded_tolerance = 0x1p-10;

struct Size {
  uint64_t batch, heads, queries, keys, key_width, value_width;
};

// Rows hold `before` elements (twice and three times as many for k and v) in front of the heads and `behind`
// them.
struct Case {
  Size size;
  uint64_t before = 0, behind = 0;
  double given = 1, values = 1;  // powers of two: of the result's gradient and of v
  double scale = 0;
  bool store_lse = true;

  double factor() const { return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size.key_width)); }
  AttentionOptions options() const {
    return {.heads = size.heads,
            .key_width = size.key_width,
            .value_width = size.value_width,
            .q_offset = before,
            .k_offset = 2 * before,
            .v_offset = 3 * before,
            .scale = scale,
            .store_lse = store_lse,
            .rounded = true};
  }
  std::string label() const {
    return std::to_string(size.batch) + "x" + std::to_string(size.heads) + " heads of " +
           std::to_string(size.key_width) + " and " + std::to_string(size.value_width) + ", " +
           std::to_string(size.queries) + " queries, " + std::to_string(size.keys) + " keys, " +
           std::to_string(before) + " before and " + std::to_string(behind) + " behind, gradient times 2^" +
           std::to_string(std::ilogb(given)) + ", values times 2^" + std::to_string(std::ilogb(values));
  }
  // f32 tensors of numbers that f16 holds, but for the factor.
  static OpInput tensor(const Shape& shape, uint64_t seed, double bound, double times) {
    HostTensor made = random_tensor(shape, DType::f16, seed, -bound, bound);
    made.dtype = DType::f32;
    for (double& value : made.values) value *= times;
    return {std::move(made)};
  }
  std::vector<OpInput> inputs(uint64_t seed) const {
    const Size& s = size;
    const auto row = [&](uint64_t width, uint64_t number) {
      return number * before + s.heads * width + behind;
    };
    return {tensor({s.batch, s.queries, row(s.key_width, 1)}, seed, 2, 1),
            tensor({s.batch, s.keys, row(s.key_width, 2)}, seed + 1, 2, 1),
            tensor({s.batch, s.keys, row(s.value_width, 3)}, seed + 2, 1, values)};
  }
  reference::Heads heads(std::span<const OpInput> in, uint32_t which) const {
    const uint64_t tokens = which == 0 ? size.queries : size.keys;
    const uint64_t width = which == 2 ? size.value_width : size.key_width;
    return {in[which].tensor.values, tokens, in[which].tensor.shape[2], (which + 1) * before, width};
  }
  reference::Attention forward(std::span<const OpInput> in) const {
    return reference::attention(heads(in, 0), heads(in, 1), heads(in, 2), size.batch, size.heads, factor());
  }
  void fill_gradients(OpCase& c) const {
    reference::AttentionGradients gradients =
        reference::attention_gradient(heads(c.inputs, 0), heads(c.inputs, 1), heads(c.inputs, 2), size.batch,
                                      size.heads, factor(), c.inputs[5].tensor.values);
    c.expected = {std::move(gradients.q), std::move(gradients.k), std::move(gradients.v)};
  }
};

// The kernels for matrix units alone: the others don't care whether they may round.
constexpr std::array forward_kernels{KernelDef{"coopmat", Target::matrix_units, refuse_attention_coopmat,
                                               no_preference, lower_attention_coopmat,
                                               attention_coopmat_configurations}};
constexpr std::array gradient_kernels{
    KernelDef{"coopmat", Target::matrix_units, refuse_attention_gradient_coopmat, no_preference,
              lower_attention_gradient_coopmat, attention_gradient_coopmat_configurations}};
const OpDef op_forward{"attention_rounded", infer_attention, attention_flops, forward_kernels};
const OpDef op_gradient{"attention_gradient_rounded", infer_attention_gradient, attention_gradient_flops,
                        gradient_kernels};

void require_matrix_units() {
  if (!test_device().device->capabilities().supports(Need::coopmat)) {
    SKIP("rounded attention not run: the device has no cooperative matrices");
  }
}

OpCase forward_case(const Case& c, uint64_t seed) {
  OpCase result;
  result.label = c.label();
  result.tolerance = rounded_tolerance;
  result.inputs = c.inputs(seed);
  reference::Attention expected = c.forward(result.inputs);
  result.expected = {std::move(expected.out)};
  if (c.store_lse) result.expected.push_back(std::move(expected.lse));
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    return graph.add(op_forward, "y", {ids[0], ids[1], ids[2]}, attention_attributes(c.options()));
  };
  return result;
}

// The operator alone, given the reference's result.
OpCase gradient_case(const Case& c, uint64_t seed) {
  OpCase result;
  result.label = c.label();
  result.tolerance = rounded_tolerance;
  result.inputs = c.inputs(seed);
  const reference::Attention expected = c.forward(result.inputs);
  const Size& s = c.size;
  for (const auto& [shape, values] :
       {std::pair{Shape{s.batch, s.queries, s.heads * s.value_width}, &expected.out},
        {Shape{s.batch, s.heads, s.queries}, &expected.lse}}) {
    HostTensor tensor{shape, DType::f32, *values};
    for (double& value : tensor.values) value = round_to(DType::f32, value);
    result.inputs.push_back({std::move(tensor)});
  }
  result.inputs.push_back(Case::tensor({s.batch, s.queries, s.heads * s.value_width}, seed + 3, 1, c.given));
  c.fill_gradients(result);
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    Attributes attributes = attention_attributes(c.options());
    attributes.set("k_output", int64_t{1});
    attributes.set("v_output", int64_t{2});
    return graph.add(op_gradient, "g", {ids.begin(), ids.end()}, std::move(attributes));
  };
  return result;
}

// Why coopmat doesn't take the last node of a graph; empty where it does.
std::string refusal(const Graph& graph, const Capabilities& device = rich_gpu()) {
  std::vector<std::string> refusals;
  candidates_of(LowerContext(graph, graph.nodes().back(), device), &refusals);
  for (const std::string& reason : refusals) {
    if (reason.starts_with("coopmat: ")) return reason;
  }
  return "";
}

// A make-believe card has the registers of a card and the software driver's narrow subgroups, which leave no
// block for wide heads.
void check_gradient(const OpCase& c) {
  Graph graph;
  std::vector<ValueId> ids;
  for (const OpInput& input : c.inputs) {
    ids.push_back(graph.input("in" + std::to_string(ids.size()), input.tensor.shape, input.tensor.dtype));
  }
  c.build(graph, ids);
  const Capabilities& device = test_device().device->capabilities();
  const std::string reason = refusal(graph, device);
  if (device.type != DeviceType::cpu && reason.find("no block of its matrices fits") != std::string::npos) {
    leave_out(c.label + ": " + reason);
    return;
  }
  check_op(op_gradient, c);
}

}  // namespace

TEST_CASE("attention that may be rounded matches the float64 reference") {
  require_matrix_units();
  uint64_t seed = 10;
  for (const Size size : {Size{1, 1, 1, 1, 4, 4},
                          {2, 2, 17, 17, 16, 16},
                          {1, 2, 50, 50, 4, 4},
                          {1, 1, 61, 7, 48, 11},
                          {1, 1, 33, 67, 72, 80},
                          {1, 1, 19, 35, 88, 96},
                          {1, 1, 197, 257, 64, 64}}) {
    check_op(op_forward, forward_case({.size = size}, seed += 10));
  }
  check_op(op_forward, forward_case({.size = {2, 2, 17, 23, 8, 5}, .before = 1, .behind = 3}, 1));
  check_op(op_forward, forward_case({.size = {2, 2, 17, 23, 8, 16}, .before = 8, .store_lse = false}, 2));
}

TEST_CASE("attention_gradient that may be rounded matches the float64 reference") {
  require_matrix_units();
  uint64_t seed = 10;
  for (const Size size : {Size{1, 1, 1, 5, 4, 4},
                          {2, 2, 50, 50, 4, 4},
                          {2, 4, 17, 17, 16, 16},
                          {1, 2, 7, 197, 6, 8},
                          {1, 1, 198, 61, 48, 48},
                          {1, 1, 197, 197, 64, 64},
                          {1, 1, 257, 19, 64, 64},
                          {1, 1, 33, 67, 72, 72},
                          {1, 1, 31, 19, 88, 96},
                          {1, 1, 35, 19, 128, 128},
                          {1, 1, 17, 21, 33, 121}}) {
    check_gradient(gradient_case({.size = size}, seed += 10));
  }
}

TEST_CASE(
    "attention_gradient that may be rounded takes unaligned rows, and clears what attention didn't read") {
  require_matrix_units();
  check_gradient(gradient_case({.size = {2, 2, 17, 23, 8, 5}, .before = 1, .behind = 3}, 1));
  check_gradient(gradient_case({.size = {1, 3, 37, 41, 7, 12}, .before = 4}, 2));
  check_gradient(gradient_case({.size = {1, 1, 5, 70, 16, 16}, .behind = 16}, 3));
}

TEST_CASE("every block of rounded attention and of its gradient is right at its edges") {
  require_matrix_units();
  check_configurations(op_forward, forward_case({.size = {1, 2, 37, 43, 24, 16}}, 1));
  check_configurations(op_gradient, gradient_case({.size = {1, 2, 37, 43, 20, 12}}, 1));
  check_configurations(op_gradient, gradient_case({.size = {1, 1, 67, 35, 7, 21}, .before = 1}, 2));
}

// Without powers of two most of the first would be zeros, the last infinite.
TEST_CASE("what is rounded of attention's gradients keeps to f16's range") {
  require_matrix_units();
  for (const double given : {0x1p-60, 0x1p-24, 0x1p30, 0x1p90}) {
    check_gradient(gradient_case({.size = {1, 1, 37, 43, 16, 16}, .given = given}, 1));
  }
  for (const double values : {0x1p-12, 0x1p14}) {
    check_op(op_gradient,
             gradient_case({.size = {1, 1, 37, 43, 16, 16}, .given = 0x1p-30, .values = values}, 2));
  }
  // As far as the bound goes: one key has a value of its own, and the gradient its sign in all columns.
  OpCase c = gradient_case({.size = {1, 1, 9, 33, 64, 64}}, 3);
  for (size_t i = 0; i < 64; ++i) {
    c.inputs[2].tensor.values[i] = 32;
    for (size_t row = 0; row < 9; ++row) c.inputs[5].tensor.values[row * 64 + i] = 1;
  }
  const Case as_it_is{.size = {1, 1, 9, 33, 64, 64}};
  const reference::Attention expected = as_it_is.forward(c.inputs);
  for (size_t i = 0; i < expected.out.size(); ++i) {
    c.inputs[3].tensor.values[i] = round_to(DType::f32, expected.out[i]);
  }
  as_it_is.fill_gradients(c);
  check_gradient(c);
}

TEST_CASE("rounded attention is right for large scores") {
  require_matrix_units();
  check_op(op_forward, forward_case({.size = {1, 2, 37, 43, 16, 16}, .scale = 4}, 1));
  check_gradient(gradient_case({.size = {1, 2, 37, 43, 16, 16}, .scale = 4}, 1));
}

TEST_CASE("attention_gradient that may be rounded lets NaN through, and only where it belongs") {
  require_matrix_units();
  const Case c{.size = {1, 1, 37, 43, 8, 8}};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const uint32_t input : {0u, 1u, 2u, 5u}) {
    OpCase with_nan = gradient_case(c, 7);
    with_nan.inputs[input].tensor.values[36 * 8 + 3] = nan;
    if (input != 5) {
      const reference::Attention expected = c.forward(with_nan.inputs);
      for (const auto& [at, values] : {std::pair{3u, &expected.out}, {4u, &expected.lse}}) {
        for (size_t i = 0; i < values->size(); ++i) {
          with_nan.inputs[at].tensor.values[i] = round_to(DType::f32, (*values)[i]);
        }
      }
    }
    c.fill_gradients(with_nan);
    with_nan.allow_nonfinite = true;
    check_gradient(with_nan);
  }
}

// The numbers are a training's (tests/model/training_parity_test.cpp).
TEST_CASE("the derivative of attention that may be rounded may be, too") {
  for (const bool rounded : {false, true}) {
    Graph graph;
    const ValueId qkv = graph.input("qkv", {1, 9, 3 * 64}), dy = graph.input("dy", {1, 9, 64});
    const ValueId y =
        attention(graph, "y", qkv, qkv, qkv,
                  {.heads = 2, .key_width = 32, .k_offset = 64, .v_offset = 128, .rounded = rounded})
            .out;
    const GradientSeed seed{y, dy};
    add_gradients(graph, {&seed, 1}, {&qkv, 1});
    size_t gradients = 0;
    for (const Node& node : graph.nodes()) {
      if (node.op != &op_attention && node.op != &op_attention_gradient) continue;
      gradients += node.op == &op_attention_gradient;
      CHECK(node.attributes.flag("rounded") == rounded);
    }
    CHECK(gradients == 1);
  }
}

TEST_CASE("what attention's matrix units don't take, they refuse with a reason") {
  const auto check = [](AttentionOptions options, const std::string& of_both,
                        const std::string& of_gradient) {
    Graph graph;
    const uint64_t width = options.heads * options.key_width;
    const ValueId q = graph.input("q", {1, 9, width}), dy = graph.input("dy", {1, 9, width});
    options.store_lse = true;
    options.step = graph.input("step", {VITRINE_STEP_WORDS}, DType::u32);
    const AttentionResult y = attention(graph, "y", q, q, q, options);
    CHECK_THAT(refusal(graph), ContainsSubstring(of_both));
    attention_gradient(graph, "g", q, q, q, y.out, y.lse, dy, options);
    CHECK_THAT(refusal(graph), ContainsSubstring(of_both.empty() ? of_gradient : of_both));
    if ((of_both + of_gradient).empty()) CHECK(refusal(graph).empty());
  };
  check({.heads = 2, .key_width = 64, .rounded = true}, "", "");
  check({.heads = 2, .key_width = 64}, "matrix units multiply f16", "");
  check({.heads = 2, .key_width = 64, .rounded = true, .drop_rate = 0.5}, "the weights have dropout", "");
  check({.heads = 2, .key_width = 64, .scale = -1, .rounded = true}, "scale is not positive", "");
  check({.heads = 1, .key_width = 256, .rounded = true}, "", "heads are 256 wide, at most 128 is possible");
  Graph graph;
  const ValueId half = graph.input("q", {1, 9, 64}, DType::f16);
  CHECK_THROWS_AS(attention(graph, "y", half, half, half, {.key_width = 64, .rounded = true}), Error);
}

}  // namespace vitrine::test
