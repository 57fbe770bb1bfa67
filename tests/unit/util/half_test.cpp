#include "runtime/util/half.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "runtime/util/error.h"

namespace vitrine::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// What a 16-bit pattern means, from the definition of the format and in double.
double meaning(uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * infinity;
  }
  const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
}

struct Format {
  const char* name;
  int exponent_bits, mantissa_bits;
  uint16_t (*from)(float);
  float (*to)(uint16_t);
  uint16_t inf() const { return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits); }
};

const std::array<Format, 2> formats{{
    {"f16", 5, 10, [](float v) { return f32_to_f16(v); }, [](uint16_t v) { return f16_to_f32(v); }},
    {"bf16", 8, 7, [](float v) { return f32_to_bf16(v); }, [](uint16_t v) { return bf16_to_f32(v); }},
}};

}  // namespace

TEST_CASE("every 16-bit value converts to the f32 it means and back to itself") {
  for (const Format& format : formats) {
    INFO(format.name);
    int wrong_value = 0;
    int wrong_bits = 0;
    int nans = 0;
    for (uint32_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<uint16_t>(i);
      const float value = format.to(bits);
      const double expected = meaning(bits, format.exponent_bits, format.mantissa_bits);
      nans += std::isnan(value) ? 1 : 0;
      const bool same = std::isnan(expected)
                            ? std::isnan(value) && std::signbit(value) == ((bits & 0x8000) != 0)
                            : value == expected && std::signbit(value) == std::signbit(expected);
      wrong_value += same ? 0 : 1;
      wrong_bits += format.from(value) == bits ? 0 : 1;
    }
    CHECK(wrong_value == 0);
    CHECK(wrong_bits == 0);
    CHECK(nans == 2 * ((1 << format.mantissa_bits) - 1));
  }
}

TEST_CASE("ties between neighbouring 16-bit values go to the even one, everything else to the nearest") {
  for (const Format& format : formats) {
    INFO(format.name);
    int wrong = 0;
    for (uint32_t i = 0; i < format.inf(); ++i) {
      const auto below = static_cast<uint16_t>(i);
      const auto above = static_cast<uint16_t>(i + 1);
      // Past the largest finite value the next step stands in for Inf.
      const double low = meaning(below, format.exponent_bits, format.mantissa_bits);
      const double step = low - meaning(static_cast<uint16_t>(i == 0 ? 0 : i - 1), format.exponent_bits,
                                        format.mantissa_bits);
      const double high =
          above == format.inf() ? low + step : meaning(above, format.exponent_bits, format.mantissa_bits);
      const auto middle = static_cast<float>((low + high) / 2);
      if (static_cast<double>(middle) != (low + high) / 2) {  // bf16's smallest steps: f32 has no middle
        wrong += 1;
        continue;
      }
      const uint16_t even = (below & 1) == 0 ? below : above;
      for (const uint16_t sign : {uint16_t{0}, uint16_t{0x8000}}) {
        const float s = sign != 0 ? -1.0F : 1.0F;
        wrong += format.from(s * middle) == (even | sign) ? 0 : 1;
        wrong += format.from(s * std::nextafter(middle, -infinity)) == (below | sign) ? 0 : 1;
        wrong += format.from(s * std::nextafter(middle, infinity)) == (above | sign) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("random floats of every exponent round to the nearest f16 and bf16") {
  std::mt19937 random(1);
  for (const Format& format : formats) {
    INFO(format.name);
    int wrong = 0;
    for (int i = 0; i < 1'000'000; ++i) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
      if (std::isnan(value)) continue;
      const uint16_t bits = format.from(value);
      const uint16_t magnitude = bits & 0x7FFF;
      if (std::signbit(value) != ((bits & 0x8000) != 0) || magnitude > format.inf()) {
        ++wrong;
        continue;
      }
      if (magnitude == format.inf()) continue;  // the thresholds are the ties' test
      const double distance = std::abs(static_cast<double>(value) - format.to(bits));
      for (const int step : {-1, 1}) {
        if (magnitude == 0 && step < 0) continue;
        const float neighbour = format.to(static_cast<uint16_t>(bits + step));
        if (std::abs(static_cast<double>(value) - neighbour) < distance) ++wrong;
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("overflow, NaN and Inf keep their meaning in 16 bits") {
  CHECK(f32_to_f16(65504.0F) == 0x7BFF);
  CHECK(f32_to_f16(65519.996F) == 0x7BFF);
  CHECK(f32_to_f16(65520.0F) == 0x7C00);
  CHECK(f32_to_f16(-1e30F) == 0xFC00);
  CHECK(f32_to_f16(-infinity) == 0xFC00);
  CHECK(f32_to_f16(0x1p-24F) == 0x0001);
  CHECK(f32_to_f16(0x1p-25F) == 0x0000);
  CHECK(f32_to_f16(0x1.000002p-25F) == 0x0001);
  CHECK(f32_to_f16(-0.0F) == 0x8000);
  CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7F80);
  CHECK(f32_to_bf16(-infinity) == 0xFF80);
  // A NaN whose payload is only in the dropped bits.
  const float thin_nan = std::bit_cast<float>(0x7F80'0001U);
  CHECK(std::isnan(f16_to_f32(f32_to_f16(thin_nan))));
  CHECK(std::isnan(bf16_to_f32(f32_to_bf16(thin_nan))));
  CHECK(std::signbit(f16_to_f32(f32_to_f16(std::bit_cast<float>(0xFF80'0001U)))));
}

TEST_CASE("arrays convert like single numbers and must have one length") {
  const std::vector<float> values{0.0F, -1.5F, 65504.0F, 1e-7F, infinity};
  std::vector<uint16_t> half(values.size());
  std::vector<uint16_t> brain(values.size());
  std::vector<float> back(values.size());
  f32_to_f16(values, half);
  f32_to_bf16(values, brain);
  for (size_t i = 0; i < values.size(); ++i) {
    CHECK(half[i] == f32_to_f16(values[i]));
    CHECK(brain[i] == f32_to_bf16(values[i]));
  }
  f16_to_f32(half, back);
  CHECK(back[1] == -1.5F);
  bf16_to_f32(brain, back);
  CHECK(back[1] == -1.5F);
  CHECK_THROWS_AS(f32_to_f16(values, std::span(half).first(2)), Error);
}

}  // namespace vitrine::test
