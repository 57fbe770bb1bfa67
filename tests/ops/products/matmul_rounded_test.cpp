// Products of f32 that matrix units make of what f16 keeps of it: a training's, forwards and backwards.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/check/reference_gradients.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "tests/ops/products/arrangements.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

struct Size {
  uint64_t m, n, k;
};

struct Product {
  Size size;
  bool x_turned = false, weight_turned = false;
  double factor = 1;  // of x, a power of two
  bool scaled = false;
};

// Of values that f16 holds exactly, but for x's factor: whatever rounds them, only the sums can be off.
OpCase make_case(const Product& product, const OpDef& op = op_matmul) {
  const auto [m, n, k] = product.size;
  OpCase c;
  c.label = std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
            (product.x_turned ? ", x transposed" : "") +
            (product.weight_turned ? ", weight transposed" : "") + ", x times " +
            std::to_string(std::log2(product.factor)) + (product.scaled ? ", scaled" : "");
  HostTensor x = random_tensor({m, k}, DType::f16, 1), weight = random_tensor({n, k}, DType::f16, 2);
  double largest = 0;
  for (double& value : x.values) {
    value *= product.factor;
    largest = std::max(largest, std::abs(value));
  }
  c.expected = {reference::matmul(x.values, weight.values, m, n, k, {})};
  x.dtype = weight.dtype = DType::f32;
  if (product.x_turned) x = {{k, m}, DType::f32, reference::transpose(x.values, m, k)};
  if (product.weight_turned) weight = {{k, n}, DType::f32, reference::transpose(weight.values, n, k)};
  c.inputs = {{std::move(x)}, {std::move(weight)}};
  if (product.scaled) c.inputs.push_back({{{1}, DType::f32, {largest}}});
  c.build = [product, &op](Graph& graph, std::span<const ValueId> ids) {
    Attributes attributes{
        {"activation", int64_t{}}, {"out", static_cast<int64_t>(DType::f32)}, {"rounded", int64_t{1}}};
    if (product.x_turned) attributes.set("transposed_x", int64_t{1});
    if (product.weight_turned) attributes.set("transposed_weight", int64_t{1});
    std::vector<ValueId> inputs{ids[0], ids[1], {}, {}, {}};
    if (product.scaled) inputs.push_back(ids[2]);
    return graph.add(op, "y", std::move(inputs), std::move(attributes));
  };
  return c;
}

// A few arrangements, since a software driver compiles each for seconds: the first and the last, one buffer,
// two and three steps on their way, and slices of K, also more than it has steps.
std::vector<CoopmatShape> some_of(const std::vector<CoopmatShape>& shapes) {
  if (shapes.empty()) return {};
  std::vector<CoopmatShape> picked{shapes.front(), shapes.back(), shapes[shapes.size() / 2], shapes.front(),
                                   shapes.back()};
  for (CoopmatShape& shape : picked) shape.ahead = 1;
  picked[1].ahead = 3;
  picked[2].buffers = 1;
  picked[3].slices = 3;
  picked[4].slices = 8;
  picked[4].ahead = 2;
  return picked;
}
std::vector<CoopmatShape> some_listed(const Capabilities& device) {
  return some_of(coopmat_shapes(device, true));
}
std::vector<CoopmatShape> some_flexible(const Capabilities& device) {
  return some_of(coopmat_flexible_shapes(device, true));
}
using Arrangements = std::make_index_sequence<5>;
constexpr auto listed = arrangement_kernels<some_listed, refuse_coopmat, lower_coopmat_as>(Arrangements());
constexpr auto flexible =
    arrangement_kernels<some_flexible, refuse_coopmat_flexible, lower_coopmat_flexible_as>(Arrangements());
const OpDef op_listed{"matmul_rounded_shapes", infer_matmul, matmul_flops, listed};
const OpDef op_flexible{"matmul_rounded_flexible_shapes", infer_matmul, matmul_flops, flexible};

void require_matrix_units(const OpDef& op) {
  const Capabilities& device = test_device().device->capabilities();
  if ((&op == &op_listed ? some_listed(device) : some_flexible(device)).empty()) {
    SKIP("the device lists no such matrices");
  }
}

void check_arrangements(const OpDef& op) {
  require_matrix_units(op);
  check_op(op, make_case({{75, 69, 37}}, op));
  check_op(op, make_case({{67, 136, 72}, false, true, 0x1p-30, true}, op));
  check_op(op, make_case({{68, 51, 131}, true, true, 0x1p-30, true}, op));
}

TEST_CASE("arrangements of matrices round f32 operands, as they lie and turned") {
  check_arrangements(op_listed);
}

TEST_CASE("arrangements of flexible matrices round f32 operands, as they lie and turned") {
  check_arrangements(op_flexible);
}

TEST_CASE("products that may be rounded match the float64 reference") {
  for (const Product& product : {Product{{1, 1, 1}},
                                 {{3, 7, 17}, true, false},
                                 {{40, 36, 64}},
                                 {{40, 36, 64}, true, true},
                                 {{65, 48, 31}, false, true},
                                 {{65, 48, 31}, true, true},
                                 {{197, 192, 48}, false, true}}) {
    check_op(op_matmul, make_case(product));
  }
}

// Without the power of two the first would be nothing but zeros, the second infinite.
TEST_CASE("a magnitude brings all that f32 holds into the range of f16") {
  for (const double factor : {0x1p-60, 0x1p-24, 0x1p30, 0x1p100}) {
    check_op(op_matmul, make_case({{33, 40, 48}, factor < 1, true, factor, true}));
  }
}

TEST_CASE("a magnitude of zero, of infinity and of NaN leaves x as it is") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double largest : {0.0, inf, nan}) {
    OpCase c = make_case({.size = {20, 21, 24}, .scaled = true});
    c.inputs[2].tensor.values = {largest};
    if (largest != 0) {
      c.allow_nonfinite = true;
      c.inputs[0].tensor.values[3 * 24 + 7] = largest;  // row 3
    }
    c.expected = {reference::matmul(c.inputs[0].tensor.values, c.inputs[1].tensor.values, 20, 21, 24, {})};
    check_op(op_matmul, c);
  }
}

}  // namespace
}  // namespace vitrine::test
