#include "runtime/ops/attention/attention_cases.h"

#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/attention.h"
#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/relative_bias.h"

namespace vitrine {

using namespace cases;

namespace {

// What matrix units make of f32: as good as of f16.
const double rounded_tolerance = reference::usual_tolerance(DType::f16);

OpCase case_of(const AttentionCase& size, DType dtype) {
  OpCase c;
  c.label = size.label();
  c.inputs = size.inputs(dtype);
  const reference::Attention expected = size.expected(c.inputs);
  c.expected = {expected.out};
  if (size.store_lse) c.expected.push_back(expected.lse);
  size.add_extras(c.inputs);
  if (size.rounded) c.tolerance = rounded_tolerance;
  c.build = [size](Graph& graph, std::span<const ValueId> ids) {
    const AttentionResult result = attention(graph, "y", ids[0], ids[1], ids[2], size.options(ids));
    return size.store_lse ? std::vector{result.out, result.lse} : std::vector{result.out};
  };
  return c;
}

}  // namespace

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const AttentionCase& size :
         {small_attention, usual_attention, dropped_attention, dropped_bias, attention_without_lse}) {
      if (dtype == DType::f16 && size.drop_rate != 0) continue;  // weights are dropped in training, in f32
      cases.push_back(case_of(size, dtype));
    }
    for (const AttentionCase& size : causal_attentions) cases.push_back(case_of(size, dtype));
    for (const AttentionCase& size : biased_attentions) cases.push_back(case_of(size, dtype));
    for (const AttentionCase& size : bias_rows_attentions) cases.push_back(case_of(size, dtype));
  }
  for (AttentionCase size : trained_attentions) {
    for (const bool store_lse : {true, false}) {
      size.store_lse = store_lse;
      OpCase& c = cases.emplace_back(case_of(size, DType::f32));
      c.for_its_path = true;
    }
  }
  for (AttentionCase size : rounded_attentions()) {
    for (const bool store_lse : {true, false}) {
      size.store_lse = store_lse;
      OpCase& c = cases.emplace_back(case_of(size, DType::f32));
      c.for_its_path = true;
    }
  }
  return cases;
}

std::vector<Sample> attention_sample(const LoneNode& node) {
  const Attributes& attributes = node.node().attributes;
  const auto whole = [&](const char* name) { return static_cast<uint64_t>(attributes.integer(name)); };
  const uint64_t heads = whole("heads"), key_width = whole("key_width"), value_width = whole("value_width");
  const Shape &q = node.input(attention_input::q).shape, &k = node.input(attention_input::k).shape,
              &v = node.input(attention_input::v).shape;
  // All of the last image's keys, and some of its queries.
  const uint64_t image = q[0] - 1, queries = q[1];
  const std::vector<uint64_t> rows = some_rows(queries);
  std::vector<uint64_t> query_rows, key_rows;
  for (const uint64_t row : rows) query_rows.push_back(image * queries + row);
  for (uint64_t row = 0; row < k[1]; ++row) key_rows.push_back(image * k[1] + row);
  const Values q_values = rows_of(node, attention_input::q, query_rows, q[2]),
               k_values = rows_of(node, attention_input::k, key_rows, k[2]),
               v_values = rows_of(node, attention_input::v, key_rows, v[2]);
  reference::WeightFactor factor;
  if (drops_weights(attributes)) {
    // The step's words are all zero: no seed, and no step before it.
    factor = [&, mask = RandomMask{.stream = static_cast<uint32_t>(whole("stream")),
                                   .rate = attributes.number("rate")}](uint64_t row, uint64_t key) {
      const uint64_t head = row / rows.size(), query = rows[row % rows.size()];
      return mask.factor(static_cast<uint32_t>(key),
                         static_cast<uint32_t>((image * heads + head) * queries + query));
    };
  }
  reference::Sees sees;
  if (is_attention_causal(attributes)) {
    sees = [&](uint64_t query, uint64_t key) { return key <= rows[query]; };
  }
  reference::ScoreBias bias;
  if (has_relative_bias(attributes)) {
    const reference::RelativeGrid grid{whole("bias_height"), whole("bias_width"), whole("bias_first")};
    const Values values = node.values(attention_input::bias);
    bias = [&, of_all = has_bias_rows(attributes) ? reference::bias_rows(grid, values, heads)
                                                  : reference::relative_bias(grid, values, heads)](
               uint64_t, uint64_t head, uint64_t query, uint64_t key) {
      return of_all(image, head, rows[query], key);
    };
  }
  const reference::Attention expected =
      reference::attention({q_values, rows.size(), q[2], whole("q_offset"), key_width},
                           {k_values, k[1], k[2], whole("k_offset"), key_width},
                           {v_values, k[1], v[2], whole("v_offset"), value_width}, 1, heads,
                           attributes.number("scale"), factor, sees, bias);
  std::vector<Sample> samples{rows_sample(node, query_rows, heads * value_width, expected.out)};
  const bool rounded = is_attention_rounded(attributes);
  if (rounded) samples.front().tolerance = rounded_tolerance;
  if (attributes.flag("store_lse")) {
    Sample& lse = samples.emplace_back(
        Sample{.output = 1,
               .elements = {},
               .expected = expected.lse,
               .tolerance = rounded ? rounded_tolerance : reference::usual_tolerance(DType::f32)});
    for (uint64_t head = 0; head < heads; ++head) {
      for (const uint64_t row : rows) lse.elements.push_back((image * heads + head) * queries + row);
    }
  }
  return samples;
}

}  // namespace vitrine
