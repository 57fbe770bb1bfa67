// What turns numbers into pixels.
#include <cmath>

#include "runtime/ops/explain/attention_heat.h"
#include "runtime/ops/explain/centered_rows.h"
#include "runtime/ops/explain/heat.h"
#include "runtime/ops/explain/principal_colors.h"
#include "runtime/selftest/cases.h"
#include "runtime/selftest/reference_heat.h"
#include "runtime/selftest/reference_matmul.h"

namespace vitrine::selftest {
namespace {

// Colors that jump from one to the next as no real map's do.
HostTensor some_colors() { return random_tensor({heat_colors}, DType::u32, 77, 0, 0x1000000); }
HostTensor some_choice(double row) { return filled({1}, DType::u32, row); }

}  // namespace

std::vector<OpCase> heat_cases() {
  std::vector<OpCase> cases;
  constexpr uint64_t maps = 3, rows = 5, first = 2, height = 4, width = 7,
                     tokens = first + height * width + 1;
  const HostTensor stored = random_tensor({maps, rows, tokens}, DType::f32, 1, -1, 3);
  for (const bool with_mean : {false, true}) {
    constexpr uint64_t row = 3;
    OpCase& c = cases.emplace_back();
    c.label = with_mean ? "3 maps and their mean" : "3 maps";
    c.inputs = {{stored}, {some_choice(row)}, {some_colors()}};
    std::vector<double> numbers;
    for (uint64_t map = 0; map < maps + with_mean; ++map) {
      for (uint64_t i = 0; i < height * width; ++i) {
        const auto at = [&](uint64_t m) { return stored.values[(m * rows + row) * tokens + first + i]; };
        numbers.push_back(map < maps ? at(map) : (at(0) + at(1) + at(2)) / 3);
      }
    }
    c.expected = {reference::heat_pixels(numbers, maps + with_mean, height, width, c.inputs[2].tensor.values),
                  numbers};
    c.pixels = true;
    c.build = [with_mean](Graph& graph, std::span<const ValueId> ids) {
      const HeatResult result = heat(graph, "y", ids[0], ids[1], ids[2],
                                     {.first = first, .height = height, .width = width}, with_mean);
      return std::vector{result.pixels, result.numbers};
    };
  }
  return cases;
}

std::vector<OpCase> attention_heat_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    constexpr uint64_t heads = 3, key_width = 12, first = 2, height = 5, width = 3, queries = 4, row = 2;
    constexpr uint64_t keys = first + height * width, columns = heads * key_width;
    OpCase& c = cases.emplace_back();
    c.label = "3 heads of 12";
    const HostTensor q = random_tensor({1, queries, columns + 8}, dtype, 1, -2, 2),
                     k = random_tensor({1, keys, columns + 4}, dtype, 2, -2, 2);
    const AttentionOptions options{
        .heads = heads, .key_width = key_width, .q_offset = 4, .k_offset = 1, .scale = 0.4};
    const reference::Heads ks{k.values, keys, columns + 4, options.k_offset, key_width};
    const auto attended = reference::attention({q.values, queries, columns + 8, options.q_offset, key_width},
                                               ks, ks, 1, heads, options.scale);
    HostTensor lse{{1, heads, queries}, DType::f32, attended.lse};
    for (double& value : lse.values) value = round_to(DType::f32, value);
    std::vector<double> numbers((heads + 1) * height * width);
    for (uint64_t head = 0; head < heads; ++head) {
      for (uint64_t i = 0; i < height * width; ++i) {
        const uint64_t line = head * queries + row;
        const double weight = std::exp(attended.scores[line * keys + first + i] - lse.values[line]);
        numbers[head * height * width + i] = weight;
        numbers[heads * height * width + i] += weight / heads;
      }
    }
    c.inputs = {{q}, {k}, {lse}, {some_choice(row)}, {some_colors()}};
    c.expected = {reference::heat_pixels(numbers, heads + 1, height, width, c.inputs[4].tensor.values),
                  numbers};
    c.pixels = true;
    c.build = [options](Graph& graph, std::span<const ValueId> ids) {
      const HeatResult result = attention_heat(graph, "y", ids[0], ids[1], ids[2], ids[3], ids[4], options,
                                               {.first = first, .height = height, .width = width});
      return std::vector{result.pixels, result.numbers};
    };
  }
  return cases;
}

std::vector<OpCase> centered_rows_cases() {
  std::vector<OpCase> cases;
  for (const bool transposed : {false, true}) {
    constexpr uint64_t rows = 41, width = 7, first = 3, count = 37;
    OpCase& c = cases.emplace_back();
    c.label = transposed ? "37 of 41 rows, transposed" : "37 of 41 rows";
    const HostTensor x = random_tensor({1, rows, width}, DType::f32, 1, 1, 5);
    std::vector<double> means(width), left(count * width);
    for (uint64_t i = 0; i < count * width; ++i) means[i % width] += x.values[first * width + i] / count;
    for (uint64_t i = 0; i < count * width; ++i)
      left[transposed ? i % width * count + i / width : i] = x.values[first * width + i] - means[i % width];
    c.inputs = {{x}};
    c.expected = {left, means};
    c.build = [transposed](Graph& graph, std::span<const ValueId> ids) {
      const CenteredRows result = centered_rows(graph, "y", ids[0], first, count, transposed);
      return std::vector{result.rows, result.means};
    };
  }
  return cases;
}

std::vector<OpCase> principal_colors_cases() {
  std::vector<OpCase> cases;
  for (const auto& [count, width] : {std::pair<uint64_t, uint64_t>{29, 11}, {11, 29}}) {
    constexpr uint64_t first = 2;
    OpCase& c = cases.emplace_back();
    c.label = std::to_string(count) + " patches of " + std::to_string(width);
    // Columns that differ in how far they spread: their components do, too.
    HostTensor x = random_tensor({first + count, width}, DType::f32, 5);
    for (size_t i = 0; i < x.values.size(); ++i)
      x.values[i] = round_to(DType::f32, 3 + x.values[i] * std::pow(0.7, static_cast<double>(i % width)));
    c.inputs = {{x}};
    c.expected = {reference::principal_colors(x.values, width, first, count)};
    c.pixels = true;
    c.build = [count = count](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{principal_colors(graph, "y", ids[0], first, count)};
    };
  }
  return cases;
}

}  // namespace vitrine::selftest
