// Differentiation as a change of a graph; whether its numbers are right, tests/ops and tests/model say.
#include "runtime/graph/autodiff.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "runtime/graph/activation.h"
#include "runtime/graph/op.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/magnitude.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/norms/layer_norm.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

size_t count(const Graph& graph, std::string_view op) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op->name == op; }));
}

TEST_CASE("a value that is used twice has the sum of both gradients") {
  Graph graph;
  const ValueId x = graph.input("x", {3, 4}), dy = graph.input("dy", {3, 4});
  const ValueId twice = scale(graph, "twice", x, 2), thrice = scale(graph, "thrice", x, 3);
  const ValueId y = add(graph, "y", twice, thrice);
  const auto gradients = add_gradients(graph, {{{y, dy}}}, {{x}});
  REQUIRE(gradients.size() == 1);
  CHECK(graph.value(gradients[0]).shape == Shape{3, 4});
  CHECK(graph.nodes().back().outputs[0] == gradients[0]);
  CHECK(graph.nodes().back().op->name == "binary");
}

TEST_CASE("layer_norm takes over the gradient that went around it") {
  Graph graph;
  const ValueId x = graph.input("x", {3, 4}), dy = graph.input("dy", {3, 4}), gamma = graph.input("g", {4}),
                beta = graph.input("b", {4});
  const ValueId y = add(graph, "y", x, layer_norm(graph, "norm", x, gamma, beta));
  const size_t before = graph.nodes().size();
  const auto gradients = add_gradients(graph, {{{y, dy}}}, {{x, gamma}});
  CHECK(graph.nodes().size() == before + 1);
  const Node& node = graph.nodes().back();
  CHECK(node.op->name == "layer_norm_gradient");
  CHECK(node.inputs.back() == dy);
  CHECK(gradients == std::vector{node.outputs[0], node.outputs[1]});
}

TEST_CASE("nothing is differentiated that nothing asks for") {
  Graph graph;
  const ValueId x = graph.input("x", {3, 4}), w = graph.input("w", {3, 4}),
                other = graph.input("other", {3, 4});
  const ValueId y = multiply(graph, "y", activate(graph, "gelu", x, Activation::gelu), w);
  const ValueId dy = graph.input("dy", {3, 4});
  const size_t before = graph.nodes().size();
  const auto gradients = add_gradients(graph, {{{y, dy}}}, {{w, other}});
  CHECK(bool(gradients[0]));
  CHECK(!gradients[1]);
  CHECK(graph.nodes().size() == before + 1);
  CHECK(count(graph, "activation_gradient") == 0);
}

TEST_CASE("an operator without a derivative is named with its node") {
  Graph graph;
  const ValueId x = graph.input("x", {3, 4});
  const ValueId y = magnitude(graph, "largest", x);
  const ValueId dy = graph.input("dy", graph.value(y).shape);
  CHECK_THROWS_MATCHES(add_gradients(graph, {{{y, dy}}}, {{x}}), Error,
                       MessageMatches(ContainsSubstring("magnitude 'largest'")));
}

TEST_CASE("a gradient of another shape than its value is refused") {
  Graph graph;
  const ValueId x = graph.input("x", {3, 4});
  const ValueId y = scale(graph, "y", x, 2);
  const ValueId dy = graph.input("dy", {4, 3});
  CHECK_THROWS_AS(add_gradients(graph, {{{y, dy}}}, {{x}}), Error);
}

TEST_CASE("a segment's values are computed again, once each, and only those that are needed") {
  // Two segments of gelu(gelu(x)) * 2: the derivative needs what goes into both activations.
  const auto build = [](const AutodiffOptions& options) {
    Graph graph;
    const ValueId x = graph.input("x", {3, 4}), dy = graph.input("dy", {3, 4});
    ValueId y = x;
    for (const std::string part : {"0", "1"}) {
      y = activate(graph, part + ".first", y, Activation::gelu);
      y = activate(graph, part + ".second", y, Activation::gelu);
      y = scale(graph, part + ".third", y, 2);
    }
    add_gradients(graph, {{{y, dy}}}, {{x}}, options);
    return graph;
  };
  const Graph kept = build({});
  const Graph again =
      build({.segment = [](const Node& node) -> std::optional<uint32_t> { return node.name[0] - '0'; }});
  // Of each segment the first activation alone: what went in was kept, and the rest nobody asks for.
  CHECK(count(again, "unary") == count(kept, "unary") + 2);
  CHECK(count(again, "activation_gradient") == count(kept, "activation_gradient"));
  CHECK(bool(again.find("0.first.again")));
  CHECK(bool(again.find("1.first.again")));
}

TEST_CASE("a graph is taken apart before it is differentiated") {
  Graph graph;
  const ValueId x = graph.input("x", {3, 4}), w = graph.input("w", {5, 4}), b = graph.input("b", {5});
  graph.output(matmul(graph, "y", x, w, {.bias = b, .activation = Activation::gelu}), "out");
  Graph plain = plain_graph(graph);
  CHECK(plain.nodes().size() == 2);  // a product with its bias has a derivative as a whole
  const ValueId dy = plain.input("dy", {3, 5});
  const std::vector<ValueId> wrt{plain.find("x"), plain.find("w"), plain.find("b")};
  const auto gradients = add_gradients(plain, {{{plain.find("out"), dy}}}, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) CHECK(plain.value(gradients[i]).shape == plain.value(wrt[i]).shape);
}

}  // namespace
}  // namespace vitrine
