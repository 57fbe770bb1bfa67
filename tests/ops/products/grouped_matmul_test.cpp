#include "runtime/ops/products/grouped_matmul.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"

namespace vitrine::test {
namespace {

struct Size {
  uint64_t rows, groups, n, k;
};

OpCase make_case(Size size, const HostTensor& x, bool has_bias) {
  const auto [rows, groups, n, k] = size;
  const HostTensor weight = random_tensor({groups, n, k}, x.dtype, 2);
  const HostTensor bias = random_tensor({groups, n}, DType::f32, 3);
  OpCase c;
  c.label = std::to_string(rows) + " rows, " + std::to_string(groups) + " groups of " + std::to_string(k) +
            " to " + std::to_string(n) + " " + std::string(name_of(x.dtype));
  c.inputs = {{x, Role::input}, {weight, Role::constant}};
  if (has_bias) c.inputs.push_back({bias, Role::constant});
  c.build = [has_bias](Graph& graph, std::span<const ValueId> ids) -> std::vector<ValueId> {
    return {grouped_matmul(graph, "y", ids[0], ids[1], has_bias ? ids[2] : ValueId{})};
  };
  c.expected = {reference::grouped_matmul(x.values, weight.values,
                                          has_bias ? bias.values : reference::Values{}, groups, n, k)};
  return c;
}

}  // namespace

TEST_CASE("grouped_matmul matches the float64 reference") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    uint64_t seed = 1;
    for (const Size size : {Size{100, 2, 4, 4},
                            {1, 1, 2, 3},
                            {17, 3, 5, 7},
                            {50, 8, 48, 48},
                            {65, 3, 64, 31},
                            {3, 12, 17, 65}}) {
      const HostTensor x = random_tensor({size.rows, size.groups * size.k}, dtype, ++seed);
      check_op(op_grouped_matmul, make_case(size, x, seed % 2 == 0));
    }
  }
}

// x repeated for every set is what the reference for one set is given.
HostTensor repeated(const HostTensor& x, uint64_t width, uint64_t sets) {
  HostTensor wide{.shape = {x.values.size() / width, sets * width}, .dtype = x.dtype};
  for (size_t row = 0; row < x.values.size(); row += width) {
    for (uint64_t set = 0; set < sets; ++set) {
      const auto from = x.values.begin() + static_cast<ptrdiff_t>(row);
      wide.values.insert(wide.values.end(), from, from + static_cast<ptrdiff_t>(width));
    }
  }
  return wide;
}

TEST_CASE("several sets of groups see the same slices") {
  for (const Size size : {Size{100, 6, 4, 4}, Size{33, 6, 5, 3}, Size{65, 12, 2, 6}, Size{7, 3, 8, 10}}) {
    const uint64_t sets = 3, slices = size.groups / sets;
    const HostTensor x = random_tensor({size.rows, slices * size.k}, DType::f32, 5);
    OpCase c = make_case(size, repeated(x, slices * size.k, sets), true);
    c.inputs[0].tensor = x;
    check_op(op_grouped_matmul, c);

    // Turned: the sum over the sets of what each gives.
    const HostTensor dy = random_tensor({size.rows, size.groups * size.n}, DType::f32, 6);
    const HostTensor weight = random_tensor({size.groups, size.n, size.k}, DType::f32, 7);
    OpCase turned;
    turned.label = c.label + ", turned";
    turned.inputs = {{dy, Role::input}, {weight, Role::constant}};
    turned.build = [](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{grouped_matmul_turned(graph, "dx", ids[0], ids[1], 3)};
    };
    std::vector<double> expected(size.rows * slices * size.k);
    for (uint64_t row = 0; row < size.rows; ++row) {
      for (uint64_t g = 0; g < size.groups; ++g) {
        for (uint64_t n = 0; n < size.n; ++n) {
          for (uint64_t k = 0; k < size.k; ++k) {
            expected[(row * slices + g % slices) * size.k + k] +=
                dy.values[(row * size.groups + g) * size.n + n] *
                weight.values[(g * size.n + n) * size.k + k];
          }
        }
      }
    }
    turned.expected = {expected};
    check_op(op_grouped_matmul, turned);
  }
}

TEST_CASE("grouped_matmul takes batches and keeps groups apart") {
  // A NaN in group 1 of one row may reach nothing but that group's outputs.
  HostTensor x = random_tensor({2, 3, 2 * 5}, DType::f32, 1);
  x.values[2 * 10 + 7] = std::numeric_limits<double>::quiet_NaN();
  OpCase c = make_case({6, 2, 4, 5}, x, true);
  c.allow_nonfinite = true;
  check_op(op_grouped_matmul, c);
}

}  // namespace vitrine::test
