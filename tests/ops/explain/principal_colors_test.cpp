#include "runtime/ops/explain/principal_colors.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "runtime/check/reference_heat.h"
#include "runtime/ops/explain/centered_rows.h"
#include "tests/support/op_test.h"

namespace vitrine::test {
namespace {

OpCase colors_case(HostTensor tokens, uint64_t first, uint64_t count, std::vector<double> expected) {
  OpCase c;
  c.label = std::to_string(count) + " patches of " + std::to_string(tokens.shape[-1]);
  c.inputs = {{std::move(tokens)}};
  c.expected = {std::move(expected)};
  c.pixels = true;
  c.build = [first, count](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{principal_colors(graph, "y", ids[0], first, count)};
  };
  return c;
}

// Tokens around a mean of their own, with components that spread less and less, by `ratio` each.
HostTensor tokens_of(uint64_t rows, uint64_t width, uint64_t seed, double ratio = 0.75) {
  HostTensor x = random_tensor({1, rows, width}, DType::f32, seed);
  for (size_t i = 0; i < x.values.size(); ++i) {
    const auto column = static_cast<double>(i % width);
    x.values[i] = round_to(DType::f32, std::sin(column) + x.values[i] * std::pow(ratio, column));
  }
  return x;
}

}  // namespace

TEST_CASE("principal_colors equals float64 eigenvectors, for more patches than numbers and fewer") {
  uint64_t seed = 1;
  for (const auto& [first, count, width] : {std::tuple<uint64_t, uint64_t, uint64_t>{0, 16, 8},
                                            {1, 8, 16},
                                            {5, 49, 24},
                                            {1, 25, 61},
                                            {0, 3, 3},
                                            {0, 4, 50},
                                            {2, 61, 5},
                                            {0, 196, 48}}) {
    const HostTensor x = tokens_of(first + count + 2, width, ++seed);
    check_op(op_principal_colors,
             colors_case(x, first, count, reference::principal_colors(x.values, width, first, count)));
  }
}

// Tokens are A B with twelve inner columns, so that float64 needs the eigenvectors of 12 x 12 only: with
// B's rows orthogonal and of length one, the scores are those of A's rows.
TEST_CASE("principal_colors is right at the size of the largest models") {
  constexpr uint64_t count = 1369, width = 1536, inner = 12;
  HostTensor a = random_tensor({count, inner}, DType::f32, 3);
  for (size_t i = 0; i < a.values.size(); ++i) a.values[i] *= std::pow(0.8, static_cast<double>(i % inner));
  HostTensor x = filled({1, count, width}, DType::f32, 0);
  for (uint64_t p = 0; p < count; ++p) {
    for (uint64_t d = 0; d < width; ++d) {
      double sum = 0.5;
      for (uint64_t i = 0; i < inner; ++i) {  // cosines: orthogonal rows
        const double row =
            std::cos(3.14159265358979324 * static_cast<double>((i + 1) * (2 * d + 1)) / (2 * width));
        sum += a.values[p * inner + i] * row * std::sqrt(2.0 / width);
      }
      x.values[p * width + d] = round_to(DType::f32, sum);
    }
  }
  check_op(op_principal_colors,
           colors_case(x, 0, count, reference::principal_colors(a.values, inner, 0, count)));
}

TEST_CASE("components that there are not are grey") {
  for (const uint64_t width : {1, 2}) {
    const HostTensor x = tokens_of(30, width, 5);
    const auto expected = reference::principal_colors(x.values, width, 1, 29);
    CHECK((static_cast<uint32_t>(expected[3]) >> 16 & 255) == 128);
    check_op(op_principal_colors, colors_case(x, 1, 29, expected));
  }
  // All tokens alike, also where their numbers have no short sum.
  for (const double value : {0.0, 0.1, 1000.3}) {
    HostTensor x = filled({1, 33, 24}, DType::f32, value);
    for (size_t i = 0; i < x.values.size(); ++i)
      x.values[i] = round_to(DType::f32, value * (1 + static_cast<double>(i % 24)));
    OpCase c = colors_case(x, 1, 32, std::vector<double>(32, 0xff808080u));
    c.exact = true;
    c.pixels = false;
    c.allow_nonfinite = true;  // the same everywhere
    check_op(op_principal_colors, c);
  }
  // One patch has nothing that it could differ from.
  OpCase one = colors_case(tokens_of(3, 8, 6), 1, 1, {double{0xff808080u}});
  check_op(op_principal_colors, one);
}

TEST_CASE("principal_colors hides no number that isn't finite") {
  for (const double value :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    HostTensor x = tokens_of(20, 12, 7);
    x.values[5 * 12 + 3] = value;
    OpCase c = colors_case(x, 1, 16, std::vector<double>(16, 0xffff00ffu));
    c.allow_nonfinite = true;
    check_op(op_principal_colors, c);
    x.values[5 * 12 + 3] = 0;
    x.values[0] = value;  // of no patch
    check_op(op_principal_colors, colors_case(x, 1, 16, reference::principal_colors(x.values, 12, 1, 16)));
  }
}

TEST_CASE("centered_rows takes each column's mean off") {
  for (const OpCase& c : centered_rows_cases()) check_op(op_centered_rows, c);
  Graph graph;
  const ValueId x = graph.input("x", {1, 9, 4}), two = graph.input("two", {2, 9, 4});
  CHECK_THROWS(centered_rows(graph, "a", x, 5, 5, false));
  CHECK_THROWS(centered_rows(graph, "b", x, 5, 0, false));
  CHECK_THROWS(centered_rows(graph, "c", two, 0, 9, false));
}

}  // namespace vitrine::test
