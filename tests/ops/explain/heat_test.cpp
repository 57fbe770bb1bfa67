#include "runtime/ops/explain/heat.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

#include "images/color_map.h"
#include "images/monotone.h"
#include "runtime/check/reference_heat.h"
#include "runtime/ops/explain/attention_heat.h"
#include "tests/support/op_test.h"
#include "tests/support/reference_matmul.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

HostTensor colors_of(ColorMap map) {
  const auto table = color_table(map);
  return {{heat_colors}, DType::u32, {table.begin(), table.end()}};
}

struct Size {
  uint64_t maps, rows, first, height, width, behind;
  uint64_t tokens() const { return first + height * width + behind; }
};

OpCase heat_case(const HostTensor& stored, const Size& s, uint64_t row, bool with_mean,
                 ColorMap map = ColorMap::inferno) {
  OpCase c;
  c.label = std::to_string(s.maps) + " maps of " + std::to_string(s.height) + "x" + std::to_string(s.width);
  c.inputs = {{stored}, {filled({1}, DType::u32, static_cast<double>(row))}, {colors_of(map)}};
  std::vector<double> numbers;
  for (uint64_t m = 0; m < s.maps + with_mean; ++m) {
    for (uint64_t i = 0; i < s.height * s.width; ++i) {
      double sum = 0;
      for (uint64_t each = m < s.maps ? m : 0; each < (m < s.maps ? m + 1 : s.maps); ++each)
        sum += stored.values[(each * s.rows + row) * s.tokens() + s.first + i];
      numbers.push_back(m < s.maps ? sum : sum / static_cast<double>(s.maps));
    }
  }
  c.expected = {
      reference::heat_pixels(numbers, s.maps + with_mean, s.height, s.width, c.inputs[2].tensor.values),
      numbers};
  c.pixels = true;
  c.build = [s, with_mean](Graph& graph, std::span<const ValueId> ids) {
    const HeatResult result = heat(graph, "y", ids[0], ids[1], ids[2],
                                   {.first = s.first, .height = s.height, .width = s.width}, with_mean);
    return std::vector{result.pixels, result.numbers};
  };
  return c;
}

uint32_t byte(double pixel, uint32_t index) { return static_cast<uint32_t>(pixel) >> (8 * index) & 255; }

}  // namespace

TEST_CASE("the reference of heat has the surface and the colors of the images' overlay") {
  constexpr uint32_t rows = 5, cols = 7;
  const HostTensor numbers = random_tensor({rows, cols}, DType::f32, 3);
  const std::vector<float> grid(numbers.values.begin(), numbers.values.end());
  const auto [low, high] = std::ranges::minmax(numbers.values);
  std::vector<double> places;
  for (uint32_t x = 0; x < 9 * cols; ++x) places.push_back((x + 0.5) / 9);
  const MonotoneSurface surface(grid, rows, cols, places);
  std::vector<double> line(places.size());
  for (const ColorMap map : {ColorMap::inferno, ColorMap::viridis, ColorMap::grey}) {
    const auto pixels = reference::heat_pixels(numbers.values, 1, rows, cols, colors_of(map).values);
    for (uint32_t y = 0; y < 9 * rows; ++y) {
      surface.row_at((y + 0.5) / 9, line);
      for (uint32_t x = 0; x < 9 * cols; ++x) {
        const double warmth = std::clamp((line[x] - low) / (high - low), 0.0, 1.0);
        const Rgb color = color_of(map, warmth);
        const double pixel = pixels[y * 9 * cols + x];
        bool near = std::abs(byte(pixel, 3) - 255 * (0.55 + 0.45 * warmth)) <= 0.501;
        for (uint32_t i = 0; i < 3; ++i)
          near = near && std::abs(static_cast<int>(byte(pixel, i)) - int{color[i]}) <= 1;
        if (!near) FAIL("pixel " << x << ", " << y << " differs");
      }
    }
  }
}

TEST_CASE("heat shows a row of stored maps within one of 255") {
  uint64_t seed = 1;
  for (const Size& s : {Size{1, 1, 0, 1, 1, 0},
                        {1, 2, 1, 1, 9, 0},
                        {3, 2, 0, 5, 1, 3},
                        {2, 3, 5, 2, 2, 0},
                        {12, 1, 1, 14, 14, 0},
                        {1, 1, 5, 37, 37, 0}}) {
    const HostTensor stored = random_tensor({s.maps, s.rows, s.tokens()}, DType::f32, ++seed, 0, 0.1);
    for (const bool with_mean : {false, true}) {
      OpCase c = heat_case(stored, s, s.rows - 1, with_mean, seed % 2 ? ColorMap::viridis : ColorMap::grey);
      c.allow_nonfinite = s.height * s.width == 1;  // one patch has one color
      check_op(op_heat, c);
    }
  }
}

TEST_CASE("heat of the largest grid that any device takes") {
  const Size s{1, 1, 1, 63, 64, 0};
  check_op(op_heat, heat_case(random_tensor({1, 1, s.tokens()}, DType::f32, 9), s, 0, false));
}

TEST_CASE("heat of equal numbers is the low end's color") {
  const Size s{1, 1, 1, 3, 4, 0};
  OpCase c = heat_case(filled({1, 1, s.tokens()}, DType::f32, 0.25), s, 0, false, ColorMap::viridis);
  c.allow_nonfinite = true;
  const Rgb low = color_of(ColorMap::viridis, 0);
  CHECK(byte(c.expected[0][0], 0) == low[0]);
  CHECK(byte(c.expected[0][0], 3) == 140);
  check_op(op_heat, c);
}

TEST_CASE("heat shows patches whose numbers aren't finite, and them alone") {
  const Size s{3, 2, 1, 6, 5, 1};
  HostTensor stored = random_tensor({s.maps, s.rows, s.tokens()}, DType::f32, 4);
  const auto at = [&](uint64_t map, uint64_t patch) -> double& {
    return stored.values[(map * s.rows + 1) * s.tokens() + s.first + patch];
  };
  at(0, 7) = nan;
  at(0, 8) = inf;
  at(1, 0) = -inf;
  for (uint64_t i = 0; i < s.height * s.width; ++i) at(2, i) = nan;
  OpCase c = heat_case(stored, s, 1, true);
  c.allow_nonfinite = true;
  size_t magenta = 0;
  for (const double pixel : c.expected[0]) magenta += pixel == double{0xffff00ffu};
  CHECK(magenta == 81 * (2 + 1 + 2 * s.height * s.width));
  check_op(op_heat, c);
}

TEST_CASE("attention_heat shows any token's weights in every head and their mean") {
  struct Attended {
    uint64_t heads, width, queries, first, height, columns;
  };
  uint64_t seed = 20;
  for (const DType dtype : {DType::f32, DType::f16}) {
    for (const Attended& s :
         {Attended{1, 4, 1, 0, 3, 5}, {2, 7, 17, 1, 4, 4}, {3, 48, 41, 5, 6, 6}, {12, 64, 197, 1, 14, 14}}) {
      const uint64_t keys = s.first + s.height * s.columns, width = s.heads * s.width;
      const HostTensor q = random_tensor({1, s.queries, 3 * width}, dtype, ++seed, -2, 2),
                       k = random_tensor({1, keys, 3 * width}, dtype, ++seed, -2, 2);
      const AttentionOptions options{
          .heads = s.heads, .key_width = s.width, .q_offset = 2, .k_offset = width};
      const double scale = 1 / std::sqrt(static_cast<double>(s.width));
      const reference::Heads ks{k.values, keys, 3 * width, width, s.width};
      const auto attended =
          reference::attention({q.values, s.queries, 3 * width, 2, s.width}, ks, ks, 1, s.heads, scale);
      HostTensor lse{{1, s.heads, s.queries}, DType::f32, attended.lse};
      for (double& value : lse.values) value = round_to(DType::f32, value);
      for (const uint64_t row : {uint64_t{0}, s.queries - 1}) {
        const uint64_t patches = s.height * s.columns;
        std::vector<double> numbers((s.heads + 1) * patches);
        for (uint64_t h = 0; h < s.heads; ++h) {
          for (uint64_t i = 0; i < patches; ++i) {
            const uint64_t line = h * s.queries + row;
            const double weight = std::exp(attended.scores[line * keys + s.first + i] - lse.values[line]);
            numbers[h * patches + i] = weight;
            numbers[s.heads * patches + i] += weight / static_cast<double>(s.heads);
          }
        }
        OpCase c;
        c.label = std::to_string(s.heads) + " heads of " + std::to_string(s.width) + ", token " +
                  std::to_string(row) + " of " + std::to_string(s.queries);
        c.inputs = {{q},
                    {k},
                    {lse},
                    {filled({1}, DType::u32, static_cast<double>(row))},
                    {colors_of(ColorMap::inferno)}};
        c.expected = {
            reference::heat_pixels(numbers, s.heads + 1, s.height, s.columns, c.inputs[4].tensor.values),
            numbers};
        c.pixels = true;
        c.build = [s, options](Graph& graph, std::span<const ValueId> ids) {
          const HeatResult result =
              attention_heat(graph, "y", ids[0], ids[1], ids[2], ids[3], ids[4], options,
                             {.first = s.first, .height = s.height, .width = s.columns});
          return std::vector{result.pixels, result.numbers};
        };
        check_op(op_attention_heat, c);
      }
    }
  }
}

TEST_CASE("attention_heat shows a head whose query isn't finite, and no other head") {
  for (OpCase c : attention_heat_cases()) {
    c.inputs[0].tensor.values[2 * 44 + 4 + 12] = nan;  // head 1 of the chosen row
    const uint64_t patches = 15;
    for (const uint64_t map : {1, 3}) {
      for (uint64_t i = 0; i < patches; ++i) c.expected[1][map * patches + i] = nan;
    }
    c.expected[0] = reference::heat_pixels(c.expected[1], 4, 5, 3, c.inputs[4].tensor.values);
    c.allow_nonfinite = true;
    check_op(op_attention_heat, c);
  }
}

TEST_CASE("heat names what is wrong with its inputs") {
  Graph graph;
  const ValueId stored = graph.input("stored", {2, 5, 17}), choice = graph.input("choice", {1}, DType::u32),
                colors = graph.input("colors", {256}, DType::u32);
  const HeatGrid grid{.first = 1, .height = 4, .width = 4};
  CHECK_NOTHROW(heat(graph, "right", stored, choice, colors, grid, true));
  CHECK_THROWS(heat(graph, "a", stored, colors, choice, grid, true));
  CHECK_THROWS(heat(graph, "b", stored, choice, colors, {.first = 2, .height = 4, .width = 4}, true));
  CHECK_THROWS(heat(graph, "c", stored, choice, colors, {.first = 1, .height = 0, .width = 4}, true));
  CHECK_THROWS(heat(graph, "d", choice, choice, colors, grid, true));
  const ValueId q = graph.input("q", {1, 5, 24}), k = graph.input("k", {1, 17, 24}),
                lse = graph.input("lse", {1, 3, 5}), two = graph.input("two", {2, 17, 24});
  const AttentionOptions attended{.heads = 3, .key_width = 8};
  CHECK_NOTHROW(attention_heat(graph, "right", q, k, lse, choice, colors, attended, grid));
  CHECK_THROWS(attention_heat(graph, "e", q, two, lse, choice, colors, attended, grid));
  CHECK_THROWS(attention_heat(graph, "f", k, q, lse, choice, colors, attended, grid));
  CHECK_THROWS(attention_heat(graph, "g", q, k, lse, choice, colors, {.heads = 4, .key_width = 8}, grid));
}

TEST_CASE("a grid that the device's shared memory can't hold is refused with both sizes") {
  Graph graph;
  const ValueId stored = graph.input("stored", {1, 1, 4096});
  const HeatGrid grid{.height = 64, .width = 64};
  const HeatResult result = heat(graph, "y", stored, graph.input("choice", {1}, DType::u32),
                                 graph.input("colors", {256}, DType::u32), grid, false);
  graph.output(result.pixels, "pixels");
  Capabilities device = test_device().device->capabilities();
  device.max_shared_bytes = 16384;
  const LowerContext small(graph, graph.nodes()[0], device);
  const auto why = op_heat.kernels[0].refuses(small);
  REQUIRE(why.has_value());
  CHECK(why->find("4096 patches") != std::string::npos);
  CHECK(why->find("16384") != std::string::npos);
  device.max_shared_bytes = 32768;
  CHECK_FALSE(op_heat.kernels[0].refuses(LowerContext(graph, graph.nodes()[0], device)).has_value());
}

}  // namespace vitrine::test
