#include <cmath>
#include <string>

#include "runtime/check/cases.h"
#include "runtime/check/reference_heat.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/explain/attention_heat.h"
#include "runtime/ops/explain/heat_cases.h"

namespace vitrine {

using namespace cases;

namespace {

enum class Bias : uint8_t { none, table, rows };

OpCase case_of(DType dtype, Bias kind) {
  constexpr uint64_t heads = 3, key_width = 12, height = 5, width = 3, row = 2, columns = heads * key_width;
  // A bias is of as many queries as keys.
  const bool biased = kind != Bias::none;
  const uint64_t first = kind == Bias::none    ? 2
                         : kind == Bias::table ? 1
                                               : 0,
                 keys = first + height * width, queries = biased ? keys : 4;
  OpCase c;
  c.label = std::string("3 heads of 12") + (kind == Bias::none ? "" : ", biased") +
            (kind == Bias::rows ? " by rows" : "");
  const HostTensor q = random_tensor({1, queries, columns + 8}, dtype, 1, -2, 2),
                   k = random_tensor({1, keys, columns + 4}, dtype, 2, -2, 2);
  AttentionOptions options{
      .heads = heads, .key_width = key_width, .q_offset = 4, .k_offset = 1, .scale = 0.4};
  const reference::RelativeGrid grid{height, width, first};
  const HostTensor table =
      random_tensor(kind == Bias::rows ? Shape{1, heads, keys, height + width} : Shape{grid.rows(), heads},
                    DType::f32, 3, -2, 2);
  if (biased) {
    options.bias_height = height;
    options.bias_width = width;
    options.bias_first = first;
  }
  const reference::ScoreBias bias = kind == Bias::none ? reference::ScoreBias{}
                                    : kind == Bias::table
                                        ? reference::relative_bias(grid, table.values, heads)
                                        : reference::bias_rows(grid, table.values, heads);
  const reference::Heads ks{k.values, keys, columns + 4, options.k_offset, key_width};
  const auto attended = reference::attention({q.values, queries, columns + 8, options.q_offset, key_width},
                                             ks, ks, 1, heads, options.scale, {}, {}, bias);
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
  if (biased) c.inputs.push_back({table});
  c.expected = {reference::heat_pixels(numbers, heads + 1, height, width, c.inputs[4].tensor.values),
                numbers};
  c.pixels = true;
  c.build = [=](Graph& graph, std::span<const ValueId> ids) {
    AttentionOptions attended_as = options;
    if (biased) (kind == Bias::rows ? attended_as.bias_rows : attended_as.bias) = ids[5];
    const HeatResult result = attention_heat(graph, "y", ids[0], ids[1], ids[2], ids[3], ids[4], attended_as,
                                             {.first = first, .height = height, .width = width});
    return std::vector{result.pixels, result.numbers};
  };
  return c;
}

}  // namespace

std::vector<OpCase> attention_heat_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const Bias kind : {Bias::none, Bias::table, Bias::rows}) cases.push_back(case_of(dtype, kind));
  }
  return cases;
}

}  // namespace vitrine
