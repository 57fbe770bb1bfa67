#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {

using namespace cases;

namespace {

struct MatmulSize {
  uint64_t m, n, k;
  std::string label() const { return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k); }
};
// Of a depth that four doesn't divide; a weight so small that a row stays in registers; over more than one of
// most tiles; of whole steps and runs, as a model's products are, with one of the largest tiles inside; the
// same of a few rows; and so deep that every tile is worth slices on a GPU.
constexpr MatmulSize odd{5, 67, 37}, small{19, 29, 23}, mixed{131, 137, 72}, whole{131, 264, 384},
    few{5, 60, 64}, deep{37, 76, 1536};

// Each operand is off by at most 2^-11 of itself, and by 2^-12.3 in the mean: a sum of many products by some
// 3e-4.
constexpr double rounded_tolerance = 1e-3;

// The bare product.
OpCase bare_matmul(const MatmulSize& size, DType in, DType out) {
  const auto [m, n, k] = size;
  OpCase c;
  c.label = size.label();
  c.inputs = {{random_tensor({m, k}, in, 1)}, {random_tensor({n, k}, in, 2), Role::constant}};
  c.expected = {reference::matmul(c.inputs[0].tensor.values, c.inputs[1].tensor.values, m, n, k, {})};
  c.build = [out](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{matmul(graph, "y", ids[0], ids[1], {.out = out})};
  };
  return c;
}

// All that can be fused behind it.
OpCase full_matmul(const MatmulSize& size, DType in, DType out) {
  const auto [m, n, k] = size;
  OpCase c;
  c.label = size.label() + " with everything behind it";
  c.inputs = {{random_tensor({m, k}, in, 3)},
              {random_tensor({n, k}, in, 4), Role::constant},
              {random_tensor({n}, DType::f32, 5), Role::constant},
              {random_tensor({n}, DType::f32, 6), Role::constant},
              {random_tensor({m, n}, DType::f32, 7)}};
  const auto values = [&](size_t i) { return c.inputs[i].tensor.values; };
  c.expected = {reference::matmul(
      values(0), values(1), m, n, k,
      {.bias = values(2), .scale = values(3), .residual = values(4), .activation = Activation::gelu})};
  c.build = [out](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{matmul(
        graph, "y", ids[0], ids[1],
        {.bias = ids[2], .activation = Activation::gelu, .scale = ids[3], .residual = ids[4], .out = out})};
  };
  return c;
}

// A training's product, of states or of what was computed. The gradients of x and of the weight read the
// weight and both operands column by column.
struct TurnedSize {
  MatmulSize size;
  bool x = false, weight = false;
  // f16 will do. The operands are such that rounding takes nothing from them, so that what comes out is as
  // good as in f32 with every kernel.
  bool rounded = false;
  // Of x's values, a power of two: gradients are that small. Where it isn't 1, the largest is told.
  double factor = 1;
};
OpCase turned_matmul(const TurnedSize& turned) {
  const auto [m, n, k] = turned.size;
  OpCase c;
  c.label = turned.size.label() + (turned.x        ? ", both transposed"
                                   : turned.weight ? ", weight transposed"
                                                   : ", weight computed");
  if (turned.rounded) c.label += turned.factor == 1 ? ", rounded" : ", tiny and rounded";
  const DType holds = turned.rounded ? DType::f16 : DType::f32;
  Values x = random_tensor({m, k}, holds, 1).values, weight = random_tensor({n, k}, holds, 2).values;
  double largest = 0;
  for (double& value : x) {
    value *= turned.factor;
    largest = std::max(largest, std::abs(value));
  }
  c.expected = {reference::matmul(x, weight, m, n, k, {})};
  Shape x_shape{m, k}, weight_shape{n, k};
  if (turned.x) {
    x_shape = {k, m};
    x = reference::transpose(x, m, k);
  }
  if (turned.weight) {
    weight_shape = {k, n};
    weight = reference::transpose(weight, n, k);
  }
  c.inputs = {{{x_shape, DType::f32, std::move(x)}}, {{weight_shape, DType::f32, std::move(weight)}}};
  if (turned.factor != 1) c.inputs.push_back({{{1}, DType::f32, {largest}}});
  c.build = [turned](Graph& graph, std::span<const ValueId> ids) {
    Attributes attributes{{"activation", int64_t{}}, {"out", static_cast<int64_t>(DType::f32)}};
    if (turned.x) attributes.set("transposed_x", int64_t{1});
    if (turned.weight) attributes.set("transposed_weight", int64_t{1});
    if (turned.rounded) attributes.set("rounded", int64_t{1});
    std::vector<ValueId> inputs{ids[0], ids[1], {}, {}, {}};
    if (ids.size() > 2) inputs.push_back(ids[2]);
    return graph.add(op_matmul, "y", std::move(inputs), std::move(attributes));
  };
  return c;
}
// Widths, classes and batches that four and sixteen divide or don't, where trainings have either.
constexpr TurnedSize turned_sizes[] = {{{131, 265, 384}},
                                       {{131, 264, 36}},
                                       {whole, false, true},
                                       {{131, 264, 36}, false, true},
                                       {{131, 264, 37}, false, true},
                                       {whole, true, true},
                                       {{132, 264, 384}, true, true},
                                       {{132, 265, 384}, true, true},
                                       {{131, 264, 37}, true, true},
                                       {{132, 264, 37}, true, true},
                                       {{131, 24, 10}, false, true},
                                       {{264, 49, 131}, true, true},
                                       {{64, 48, 1040}, true, true},
                                       {{64, 49, 1040}, true, true},
                                       {{29, 10, 384}}};
// Whole steps and rows that four doesn't divide, as they lie and turned, and so deep that K is cut.
constexpr double tiny = 0x1p-30;
constexpr TurnedSize rounded_sizes[] = {{whole, false, false, true},
                                        {odd, false, false, true},
                                        {whole, false, true, true, tiny},
                                        {{131, 265, 37}, false, true, true, tiny},
                                        {{264, 49, 131}, true, true, true, tiny},
                                        {{132, 264, 1040}, true, true, true, tiny},
                                        {deep, false, false, true},
                                        {deep, false, true, true, tiny},
                                        {deep, true, true, true, tiny}};

// A layer's forward pass in a training, of values that rounding does change.
OpCase rounded_layer(const MatmulSize& size) {
  OpCase c = full_matmul(size, DType::f32, DType::f32);
  c.label += ", rounded";
  c.build = [](Graph& graph, std::span<const ValueId> ids) {
    return std::vector{matmul(graph, "y", ids[0], ids[1],
                              {.bias = ids[2],
                               .activation = Activation::gelu,
                               .scale = ids[3],
                               .residual = ids[4],
                               .rounded = true})};
  };
  c.tolerance = rounded_tolerance;
  return c;
}

OpCase for_its_path(OpCase c) {
  c.for_its_path = true;
  return c;
}

// Rows of a matrix of `count` of them that lies column by column.
Values columns_of(const LoneNode& node, size_t input, const std::vector<uint64_t>& rows, uint64_t count,
                  uint64_t width) {
  Values values;
  for (const uint64_t row : rows) {
    for (uint64_t i = 0; i < width; ++i) values.push_back(node.value(input, i * count + row));
  }
  return values;
}

}  // namespace

std::vector<OpCase> matmul_cases() {
  std::vector<OpCase> cases;
  for (const auto& [in, out] :
       {std::pair{DType::f32, DType::f32}, {DType::f16, DType::f16}, {DType::f16, DType::f32}}) {
    cases.push_back(bare_matmul(odd, in, out));
    cases.push_back(bare_matmul(small, in, out));
    cases.push_back(full_matmul(mixed, in, out));
    cases.push_back(for_its_path(full_matmul(whole, in, out)));
    cases.push_back(for_its_path(bare_matmul(whole, in, out)));
    cases.push_back(for_its_path(bare_matmul(few, in, out)));
    cases.push_back(for_its_path(bare_matmul(deep, in, out)));
  }
  for (const MatmulSize& size : {mixed, whole}) cases.push_back(for_its_path(rounded_layer(size)));
  for (const TurnedSize& size : turned_sizes) cases.push_back(for_its_path(turned_matmul(size)));
  for (const TurnedSize& size : rounded_sizes) cases.push_back(for_its_path(turned_matmul(size)));
  return cases;
}

std::vector<Sample> matmul_sample(const LoneNode& node) {
  const auto [m, n, k, in_bytes, out_bytes] =
      matmul_sizes(node.node(), node.input(matmul_input::x).shape, node.input(matmul_input::weight).shape);
  const std::vector<uint64_t> rows = some_rows(m);
  const Values x = is_x_transposed(node.node()) ? columns_of(node, matmul_input::x, rows, m, k)
                                                : rows_of(node, matmul_input::x, rows, k);
  Values weight = node.values(matmul_input::weight);
  if (is_weight_transposed(node.node())) weight = reference::transpose(weight, k, n);
  reference::Epilogue epilogue{
      .bias = optional_values(node, matmul_input::bias),
      .scale = optional_values(node, matmul_input::scale),
      .residual =
          node.has_input(matmul_input::residual) ? rows_of(node, matmul_input::residual, rows, n) : Values(),
      .activation = static_cast<Activation>(node.node().attributes.integer("activation"))};
  Sample sample = rows_sample(node, rows, n, reference::matmul(x, weight, rows.size(), n, k, epilogue));
  // A sum of k terms is rounded k times; what long ones may lose is measured at k = 4096.
  if (is_rounded(node.node())) sample.tolerance = rounded_tolerance;
  if (k > 1024) sample.tolerance = std::max(sample.tolerance, 5e-6);
  return {sample};
}

}  // namespace vitrine
