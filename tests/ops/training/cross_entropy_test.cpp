#include "runtime/ops/training/cross_entropy.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_training.h"
#include "runtime/graph/autodiff.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

struct Case {
  uint64_t rows = 0, classes = 0;
  double smoothing = 0;
  double low = -4, high = 4;
};

struct Inputs {
  HostTensor logits, labels, gradient;
};

Inputs inputs_of(const Case& c) {
  Inputs in{test::random_tensor({c.rows, c.classes}, DType::f32, 1, c.low, c.high),
            test::random_tensor({c.rows}, DType::u32, 2, 0, static_cast<double>(c.classes)),
            test::random_tensor({c.rows}, DType::f32, 3, 0.1, 1)};
  // The first and the last class are labels, too.
  in.labels.values.front() = static_cast<double>(c.classes - 1);
  if (c.rows > 1) in.labels.values[1] = 0;
  return in;
}

std::string label_of(const Case& c, const char* what) {
  return std::string(what) + " of " + std::to_string(c.rows) + " x " + std::to_string(c.classes) +
         ", smoothing " + std::to_string(c.smoothing);
}

test::OpCase losses(const Case& c, const Inputs& in) {
  test::OpCase result;
  result.label = label_of(c, "losses");
  result.expected = {reference::cross_entropy(in.logits.values, in.labels.values, c.smoothing)};
  result.inputs = {{in.logits}, {in.labels}};
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{cross_entropy(graph, "loss", ids[0], ids[1], {.label_smoothing = c.smoothing})};
  };
  return result;
}

// As add_gradients() makes it.
test::OpCase gradient(const Case& c, const Inputs& in) {
  test::OpCase result;
  result.label = label_of(c, "gradient");
  result.expected = {
      reference::cross_entropy_gradient(in.gradient.values, in.logits.values, in.labels.values, c.smoothing)};
  result.inputs = {{in.logits}, {in.labels}, {in.gradient}};
  result.build = [c](Graph& graph, std::span<const ValueId> ids) {
    const ValueId loss = cross_entropy(graph, "loss", ids[0], ids[1], {.label_smoothing = c.smoothing});
    return add_gradients(graph, std::vector<GradientSeed>{{loss, ids[2]}}, std::vector{ids[0]});
  };
  return result;
}

void check(const Case& c) {
  const Inputs in = inputs_of(c);
  test::check_op(op_cross_entropy, losses(c, in));
  test::check_op(op_cross_entropy_gradient, gradient(c, in));
}

TEST_CASE("cross_entropy matches the float64 reference at every number of classes") {
  for (const uint64_t classes : {2, 3, 10, 15, 16, 17, 100, 1000, 4099}) check({13, classes});
  check({3, 21843});
}

TEST_CASE("cross_entropy matches the float64 reference at every number of samples") {
  for (const uint64_t rows : {1, 2, 7, 8, 9, 128, 251}) check({rows, 10});
  check({70001, 3});
}

TEST_CASE("cross_entropy smooths labels") {
  for (const double smoothing : {0.1, 0.5, 1.0}) {
    for (const uint64_t classes : {2, 10, 37, 1000}) check({11, classes, smoothing});
  }
  check({2, 21843, 0.1});
}

TEST_CASE("cross_entropy takes logits of any size") {
  check({.rows = 9, .classes = 50, .low = -100, .high = 100});
  check({.rows = 9, .classes = 50, .smoothing = 0.1, .low = 900, .high = 1000});
  check({.rows = 9, .classes = 50, .low = -1e38, .high = 1e38});
  check({.rows = 9, .classes = 50, .low = -1e-3, .high = 1e-3});
}

TEST_CASE("cross_entropy of one class is 0") {
  const Case c{5, 1};
  for (test::OpCase zero : {losses(c, inputs_of(c)), gradient(c, inputs_of(c))}) {
    zero.allow_nonfinite = true;  // says that the reference may be constant, which here is the point
    zero.exact = true;
    test::check_op(zero.inputs.size() == 2 ? op_cross_entropy : op_cross_entropy_gradient, zero);
  }
}

TEST_CASE("cross_entropy of a label that no class has is NaN, other rows are untouched") {
  for (const double smoothing : {0.0, 0.1}) {
    const Case c{9, 10, smoothing};
    Inputs in = inputs_of(c);
    in.labels.values[2] = 10;
    in.labels.values[3] = 4294967295.0;
    for (test::OpCase unknown : {losses(c, in), gradient(c, in)}) {
      unknown.allow_nonfinite = true;
      test::check_op(unknown.inputs.size() == 2 ? op_cross_entropy : op_cross_entropy_gradient, unknown);
    }
  }
}

TEST_CASE("cross_entropy of NaN or infinity is what PyTorch's is, other rows are untouched") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const Case c{9, 10};
  Inputs in = inputs_of(c);
  in.labels.values = {9, 0, 5, 5, 5, 5, 5, 5, 5};
  in.logits.values[2 * 10 + 7] = nan;
  in.logits.values[3 * 10 + 7] = infinity;
  in.logits.values[4 * 10 + 7] = -infinity;  // a class that can't be
  in.logits.values[5 * 10 + 5] = -infinity;  // and a label that can't be
  std::fill_n(in.logits.values.begin() + 60, 10, -infinity);
  test::OpCase special = losses(c, in);
  auto& expected = special.expected[0];
  expected[2] = expected[3] = expected[6] = nan;
  CHECK(expected[5] == infinity);
  special.allow_nonfinite = true;
  test::check_op(op_cross_entropy, special);

  special = gradient(c, in);
  for (const size_t row : {2, 3, 6}) std::fill_n(special.expected[0].begin() + row * 10, 10, nan);
  special.allow_nonfinite = true;
  test::check_op(op_cross_entropy_gradient, special);
}

TEST_CASE("cross_entropy makes NaN of a row with a NaN, wherever it stands") {
  for (const double smoothing : {0.0, 0.1}) {
    for (const uint64_t classes : {10, 197}) {
      const Case c{5, classes, smoothing};
      const Inputs in = inputs_of(c);
      test::check_nan(op_cross_entropy, losses(c, in),
                      [=](auto x) { return test::Results{reference::cross_entropy(x[0], x[1], smoothing)}; });
      test::check_nan(op_cross_entropy_gradient, gradient(c, in), [=](auto x) {
        return test::Results{reference::cross_entropy_gradient(x[2], x[0], x[1], smoothing)};
      });
    }
  }
}

TEST_CASE("the gradient of cross_entropy may overwrite the logits") {
  const Case c{17, 12};
  const Inputs in = inputs_of(c);
  test::OpCase chain = gradient(c, in);
  chain.label = "two in a row";
  chain.expected = {
      reference::cross_entropy_gradient(in.gradient.values, chain.expected[0], in.labels.values, 0)};
  chain.build = [](Graph& graph, std::span<const ValueId> ids) {
    const ValueId once = cross_entropy_gradient(graph, "once", ids[2], ids[0], ids[1]);
    return std::vector{cross_entropy_gradient(graph, "twice", ids[2], once, ids[1])};
  };
  test::check_op(op_cross_entropy_gradient, chain);
}

TEST_CASE("cross_entropy refuses what does not fit") {
  Graph graph;
  const ValueId logits = graph.input("logits", {4, 10}), labels = graph.input("labels", {4}, DType::u32);
  CHECK_THROWS_AS(cross_entropy(graph, "y", labels, labels), Error);
  CHECK_THROWS_AS(cross_entropy(graph, "y", logits, graph.input("f", {4})), Error);
  CHECK_THROWS_AS(cross_entropy(graph, "y", logits, graph.input("five", {5}, DType::u32)), Error);
  CHECK_THROWS_AS(cross_entropy(graph, "y", logits, labels, {.label_smoothing = -0.1}), Error);
  CHECK_THROWS_AS(cross_entropy(graph, "y", logits, labels, {.label_smoothing = 1.5}), Error);
  CHECK_THROWS_AS(cross_entropy_gradient(graph, "y", logits, logits, labels), Error);
  CHECK_NOTHROW(cross_entropy(graph, "y", logits, labels));
}

}  // namespace
}  // namespace vitrine
