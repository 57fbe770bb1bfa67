#include "runtime/ops/maps/group_norm.h"

#include <catch2/catch_test_macros.hpp>

#include "runtime/ops/maps/reference_maps.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

test::OpCase norm_case(const Shape& shape, uint64_t groups, DType in, DType out, Activation activation,
                       double low = -1, double high = 3) {
  test::OpCase op_case;
  op_case.label = shape.to_string() + " in " + std::to_string(groups) + " " + std::string(name_of(in)) +
                  " to " + std::string(name_of(out)) + " " + std::string(name_of(activation));
  const Shape row{shape[2]};
  op_case.inputs = {{test::random_tensor(shape, in, 1, low, high)},
                    {test::random_tensor(row, DType::f32, 2), Role::constant},
                    {test::random_tensor(row, DType::f32, 3), Role::constant}};
  op_case.expected = {reference::group_norm(op_case.inputs[0].tensor.values, shape, groups,
                                            op_case.inputs[1].tensor.values, op_case.inputs[2].tensor.values,
                                            1e-5, activation)};
  op_case.build = [=](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{group_norm(graph, "y", ids[0], ids[1], ids[2],
                                  {.groups = groups, .activation = activation, .out = out})};
  };
  return op_case;
}

struct Sizes {
  Shape shape;
  uint64_t groups;
};

// One slab and many, whole ones and not; single channels, and all of them in one group.
TEST_CASE("group_norm matches the float64 reference") {
  for (const auto& [shape, groups] : {Sizes{{2, 49, 64}, 32}, Sizes{{3, 64, 6}, 2}, Sizes{{1, 197, 35}, 7},
                                      Sizes{{2, 1, 24}, 8}, Sizes{{2, 131, 5}, 5}, Sizes{{1, 4099, 3}, 1}}) {
    for (const DType in : {DType::f32, DType::f16}) {
      for (const DType out : {DType::f32, DType::f16}) {
        test::check_op(op_group_norm, norm_case(shape, groups, in, out, Activation::none));
      }
      test::check_op(op_group_norm, norm_case(shape, groups, in, in, Activation::relu));
    }
  }
}

// E[x^2] - mean^2 would have no digit left. A sum's rounding in the mean's last digit is what is allowed for.
TEST_CASE("group_norm keeps its precision far from zero") {
  test::OpCase far = norm_case({1, 1000, 8}, 4, DType::f32, DType::f32, Activation::none, 1000, 1001);
  far.tolerance = 1000 * 4 * 0x1p-23;
  test::check_op(op_group_norm, far);
}

TEST_CASE("group_norm hides no NaN") {
  const Shape shape{2, 70, 6};
  for (const Activation activation : {Activation::none, Activation::relu}) {
    test::check_nan(
        op_group_norm, norm_case(shape, 3, DType::f32, DType::f32, activation),
        [=](std::span<const std::vector<double>> in) {
          return test::Results{reference::group_norm(in[0], shape, 3, in[1], in[2], 1e-5, activation)};
        });
  }
}

TEST_CASE("group_norm refuses groups of several sizes") {
  Graph graph;
  const ValueId x = graph.input("x", {2, 35, 6}), row = graph.constant("row", {6});
  CHECK_THROWS_AS(group_norm(graph, "y", x, row, row, {.groups = 4}), Error);
  CHECK_THROWS_AS(group_norm(graph, "y", x, row, row, {.groups = 0}), Error);
  CHECK_THROWS_AS(group_norm(graph, "y", x, graph.constant("short", {5}), row, {.groups = 3}), Error);
}

}  // namespace
}  // namespace vitrine
