#include "runtime/ops/elementwise/convert.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"
#include "tests/support/reference.h"

namespace vitrine {
namespace {

using test::HostTensor;

double from_bits(DType dtype, uint32_t bits) {
  if (dtype == DType::f32) return std::bit_cast<float>(bits);
  if (dtype == DType::bf16) return std::bit_cast<float>(bits << 16);
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = bits & 1023;
  double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return bits & 0x8000 ? -value : value;
}

void check(DType to, HostTensor x) {
  test::OpCase result;
  result.label =
      std::string(name_of(x.dtype)) + " to " + std::string(name_of(to)) + " " + x.shape.to_string();
  result.expected.emplace_back();
  for (const double value : x.values) result.expected[0].push_back(reference::nearest(to, value));
  result.inputs = {{std::move(x)}};
  result.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{convert(graph, "y", in[0], to)};
  };
  result.exact = true;
  result.allow_nonfinite = true;
  test::check_op(op_convert, result);
}

TEST_CASE("convert is exact for every f16 and bf16 number") {
  for (const DType from : {DType::f16, DType::bf16}) {
    HostTensor x{{65536}, from, {}};
    for (uint32_t bits = 0; bits < 65536; ++bits) x.values.push_back(from_bits(from, bits));
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) {
      if (to != from) check(to, x);
    }
  }
}

// Every 16-bit number, the numbers halfway to its neighbour, and the f32 numbers next to those.
TEST_CASE("convert rounds f32 to nearest even") {
  for (const DType to : {DType::f16, DType::bf16}) {
    HostTensor x{{0x7f80, 5}, DType::f32, {}};
    for (uint32_t number = 0; number < 0x7f80; ++number) {
      // Above f16's largest number both counts go on with infinity and NaN.
      const auto low = static_cast<float>(from_bits(to, number)),
                 high = static_cast<float>(from_bits(to, number + 1));
      const float middle =
          to == DType::bf16 ? std::bit_cast<float>(number << 16 | 0x8000) : low + (high - low) / 2;
      for (const float value :
           {low, std::nextafter(middle, 0.0F), middle, std::nextafter(middle, INFINITY), -middle}) {
        x.values.push_back(value);
      }
    }
    check(to, x);
  }
}

TEST_CASE("convert rounds random f32 bit patterns") {
  std::mt19937 engine(1);
  HostTensor x{{3, 33331}, DType::f32, {}};
  for (uint64_t i = 0; i < x.shape.elements(); ++i)
    x.values.push_back(from_bits(DType::f32, static_cast<uint32_t>(engine())));
  for (const DType to : {DType::f16, DType::bf16}) check(to, x);
}

TEST_CASE("convert sends numbers beyond the largest to infinity, those that round to it not") {
  check(DType::f16, {{6}, DType::f32, {65504, 65519.99609375, 65520, -65519.99609375, -65520, 1e38F}});
  check(DType::f16, {{2, 2}, DType::bf16, {65280, 65536, -65280, -65536}});
}

TEST_CASE("convert handles every count of elements") {
  for (const uint64_t count : {1, 2, 3, 197, 257, 4099}) {
    for (const DType from : {DType::f32, DType::f16, DType::bf16}) {
      for (const DType to : {DType::f32, DType::f16, DType::bf16}) {
        if (to != from) check(to, test::random_tensor({count}, from, 1));
      }
    }
  }
}

TEST_CASE("convert to the same dtype is the value itself, and to u32 an error") {
  Graph graph;
  const ValueId x = graph.input("x", {3});
  CHECK(convert(graph, "y", x, DType::f32) == x);
  CHECK_THROWS_AS(convert(graph, "y", x, DType::u32), Error);
}

TEST_CASE("converting a gradient is the derivative of converting") {
  for (const auto& [from, to] : {std::pair{DType::f32, DType::f16}, {DType::f16, DType::f32}}) {
    test::GradientCase c;
    c.label = std::string(name_of(from)) + " to " + std::string(name_of(to));
    c.inputs = {{test::random_tensor({5, 43}, from, 1)}};
    c.build = [to](Graph& graph, std::span<const ValueId> in) {
      return std::vector{convert(graph, "y", in[0], to)};
    };
    c.forward = [](std::span<const test::Values> in) { return test::Results{in[0]}; };
    c.backward = [](std::span<const test::Values>, std::span<const test::Values> dy) {
      return test::Results{dy[0]};
    };
    test::check_gradients(c);
  }
}

}  // namespace
}  // namespace vitrine
