// Transposed operands of matrix products: what the rule of fusion takes over, and what it leaves.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "runtime/graph/fusion.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/products/matmul.h"

namespace vitrine {
namespace {

size_t transposes_in(const Graph& graph) {
  return static_cast<size_t>(std::ranges::count(graph.nodes(), &op_transpose, &Node::op));
}

TEST_CASE("fusion: a product takes over the transposes of its operands, and gives them back") {
  auto graph = std::make_shared<Graph>();
  const ValueId dy = graph->input("dy", {2, 5, 3}), x = graph->input("x", {2, 5, 7});
  graph->output(matmul(*graph, "y", transpose_rows(*graph, "left", dy), transpose_rows(*graph, "right", x)),
                "o");
  const FusedGraph fused = fuse(graph, all_fusions());
  REQUIRE(fused.graph->nodes().size() == 1);
  CHECK(fused_parts(fused.graph->nodes()[0]) == std::vector<std::string_view>{"transposed"});
  CHECK(fused.graph->value(fused.graph->nodes()[0].outputs[0]).shape == Shape{3, 7});
  const FusedGraph again = fuse(fused.graph, {});
  CHECK(again.graph->nodes().size() == 3);
  CHECK(transposes_in(*again.graph) == 2);
}

TEST_CASE("fusion: transposes stay that others read, that are of many matrices, or of f16") {
  auto read_twice = std::make_shared<Graph>();
  const ValueId weight = read_twice->input("w", {7, 3}), x = read_twice->input("x", {5, 7});
  const ValueId turned = transpose(*read_twice, "turned", weight);
  read_twice->output(matmul(*read_twice, "y", x, turned), "o");
  read_twice->output(add(*read_twice, "sum", turned, turned), "p");
  CHECK(transposes_in(*fuse(read_twice, all_fusions()).graph) == 1);

  auto many = std::make_shared<Graph>();
  const ValueId matrices = transpose(*many, "turned", many->input("x", {2, 7, 5}));
  many->output(matmul(*many, "y", matrices, many->input("w", {3, 7})), "o");
  CHECK(transposes_in(*fuse(many, all_fusions()).graph) == 1);

  auto halves = std::make_shared<Graph>();
  const ValueId half = transpose(*halves, "turned", halves->input("w", {7, 3}, DType::f16));
  halves->output(matmul(*halves, "y", halves->input("x", {5, 7}, DType::f16), half), "o");
  CHECK(transposes_in(*fuse(halves, all_fusions()).graph) == 1);
}

}  // namespace
}  // namespace vitrine
