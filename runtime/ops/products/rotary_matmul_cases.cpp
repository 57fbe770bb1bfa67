#include <algorithm>
#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/products/rotary_matmul.h"

namespace vitrine {

using namespace cases;

namespace {

reference::Turns turns_of(const Attributes& attributes) {
  const auto number = [&](std::string_view name) { return static_cast<uint64_t>(attributes.integer(name)); };
  return {number("width"), number("turned"), number("heads"), attributes.flag("halves"), false};
}

struct Case {
  uint64_t tokens, angled, width, turned, heads, k;
  uint64_t tables = 1;
  bool bias = true;
};
// Pieces of tiles and whole ones; values that come along; frequencies of every head; so deep that every tile
// is worth slices on a GPU.
constexpr Case sizes[] = {{21, 17, 12, 4, 6, 20},
                          {131, 126, 64, 4, 6, 384},
                          {23, 23, 16, 3, 3, 37, 3, false},
                          {37, 36, 32, 2, 3, 1536}};

OpCase case_of(const Case& c, DType dtype, bool halves) {
  constexpr uint64_t batch = 2;
  const uint64_t m = batch * c.tokens, n = c.heads * c.width;
  const Shape table_shape{c.tables, c.angled, 2, c.width / 2};
  OpCase op;
  op.label = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(c.k) + ", heads of " +
             std::to_string(c.width) + (halves ? " in halves" : " in neighbours");
  op.inputs = {{random_tensor({batch, c.tokens, c.k}, dtype, 1)},
               {random_tensor({n, c.k}, dtype, 2), Role::constant},
               {random_tensor(table_shape, DType::f32, 3), Role::constant}};
  if (c.bias) op.inputs.push_back({random_tensor({n}, DType::f32, 4), Role::constant});
  const auto values = [&](size_t i) { return op.inputs[i].tensor.values; };
  const Attributes attributes{{"width", static_cast<int64_t>(c.width)},
                              {"turned", static_cast<int64_t>(c.turned)},
                              {"heads", static_cast<int64_t>(c.heads)},
                              {"halves", int64_t{halves}},
                              {"back", int64_t{0}}};
  const Values product =
      reference::matmul(values(0), values(1), m, n, c.k, {.bias = c.bias ? values(3) : Values()});
  op.expected = {
      reference::rotary(product, {batch, c.tokens, n}, values(2), table_shape, turns_of(attributes))};
  op.build = [=, bias = c.bias](Graph& graph, std::span<const ValueId> in) {
    return graph.add(op_rotary_matmul, "y", {in[0], in[1], bias ? in[3] : ValueId{}, {}, {}, in[2]},
                     attributes);
  };
  return op;
}

}  // namespace

std::vector<OpCase> rotary_matmul_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const Case& size : sizes) {
      for (const bool halves : {false, true}) cases.push_back(case_of(size, dtype, halves));
    }
  }
  return cases;
}

std::vector<Sample> rotary_matmul_sample(const LoneNode& node) {
  const Shape &x = node.input(matmul_input::x).shape, &table = node.input(rotary_matmul_input::table).shape;
  const uint64_t tokens = x[1], k = x[2], n = node.input(matmul_input::weight).shape[0];
  const std::vector<uint64_t> rows = some_rows(x[0] * tokens);
  const Values picked = rows_of(node, matmul_input::x, rows, k);
  const Values angles = node.values(rotary_matmul_input::table);
  const Values product = reference::matmul(picked, node.values(matmul_input::weight), rows.size(), n, k,
                                           {.bias = optional_values(node, matmul_input::bias)});
  // Each row turned where its token stands in a sample.
  Values expected;
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint64_t token = rows[i] % tokens;
    Values sample(tokens * n);
    std::copy_n(product.begin() + static_cast<std::ptrdiff_t>(i * n), n,
                sample.begin() + static_cast<std::ptrdiff_t>(token * n));
    const Values turned =
        reference::rotary(sample, {1, tokens, n}, angles, table, turns_of(node.node().attributes));
    expected.insert(expected.end(), turned.begin() + static_cast<std::ptrdiff_t>(token * n),
                    turned.begin() + static_cast<std::ptrdiff_t>((token + 1) * n));
  }
  Sample sample = rows_sample(node, rows, n, std::move(expected));
  if (k > 1024) sample.tolerance = std::max(sample.tolerance, 5e-6);
  return {sample};
}

}  // namespace vitrine
