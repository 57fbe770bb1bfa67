#include "runtime/ops/attention/attention_gradient.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/attention/attention_gradient_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/elementwise/dropout.h"
#include "runtime/ops/lowering.h"
#include "shaders/elementwise/zeros.h"

namespace vitrine {
namespace {

constexpr std::array<const char*, 3> offset_names{"q_offset", "k_offset", "v_offset"};

// Columns of q, k or v that attention reads.
struct Columns {
  uint64_t begin = 0, end = 0;
  bool meets(const Columns& other) const { return begin < other.end && other.begin < end; }
  uint64_t width() const { return end - begin; }
};

Columns columns_of(const Attributes& attributes, uint32_t input) {
  const auto attribute = [&](const char* name) { return static_cast<uint64_t>(attributes.integer(name)); };
  const uint64_t begin = attribute(offset_names.at(input));
  const uint64_t width = attribute(input == attention_input::v ? "value_width" : "key_width");
  return {begin, begin + attribute("heads") * width};
}

constexpr std::array kernels{
    KernelDef{"tiled", Target::any, refuse_attention_gradient_tiled, no_preference,
              lower_attention_gradient_tiled, attention_gradient_tiled_configurations},
    KernelDef{"coopmat", Target::matrix_units, refuse_attention_gradient_coopmat,
              prefer_attention_gradient_coopmat, lower_attention_gradient_coopmat,
              attention_gradient_coopmat_configurations},
    KernelDef{"cpu_lanes", Target::cpu, refuse_attention_gradient_lanes, prefer_on_cpu,
              lower_attention_gradient_lanes, attention_gradient_lanes_configurations},
    KernelDef{"cpu_whole", Target::cpu, refuse_attention_gradient_whole, prefer_attention_gradient_whole,
              lower_attention_gradient_whole, attention_gradient_whole_configurations},
};

}  // namespace

void infer_attention_gradient_inputs(InferContext& c) {
  using namespace attention_gradient_input;
  const Shape expected = infer_attention_inputs(c);
  const Value& q = c.input(attention_input::q);
  c.require(q.dtype == DType::f32, "q, k and v are " + std::string(name_of(q.dtype)) + ", f32 was expected");
  const auto check = [&](uint32_t input, const char* name, const Shape& shape) {
    const Value& value = c.input(input);
    c.require(value.dtype == DType::f32 && value.shape == shape,
              std::string(name) + " is " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                  ", f32 " + shape.to_string() + " was expected");
  };
  check(out, "out", expected);
  const auto heads = static_cast<uint64_t>(c.attributes().integer("heads"));
  check(lse, "lse", {expected[0], heads, expected[1]});
  check(out_gradient, "the gradient", expected);
  if (drops_weights(c.attributes())) require_step(c, step);
  c.require(!has_bias_rows(c.attributes()),
            "its attention has rows of biases, which have no derivative here");
  require_relative_bias(c, bias, heads, expected[1], c.input(attention_input::k).shape[1]);
}

void infer_attention_gradient(InferContext& c) {
  infer_attention_gradient_inputs(c);
  constexpr std::array names{"q", "k", "v"};
  const auto outputs = attention_gradient_outputs(c.attributes());
  uint32_t declared = 0;
  for (uint32_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == declared) {
      c.output(c.input(i).shape, DType::f32, names[i]);
      ++declared;
      continue;
    }
    c.require(outputs[i] < declared, "its outputs are not in order");
    for (uint32_t j = 0; j < i; ++j) {
      if (outputs[j] != outputs[i]) continue;
      c.require(c.input(i).shape == c.input(j).shape &&
                    !columns_of(c.attributes(), i).meets(columns_of(c.attributes(), j)),
                std::string(names[i]) + "'s gradient can't lie in " + names[j] + "'s");
    }
  }
}

double attention_gradient_flops(const LowerContext& context) {
  const AttentionSizes s = attention_sizes(context);
  return 2.0 * static_cast<double>(s.batch * s.heads * s.queries) * static_cast<double>(s.keys) *
         static_cast<double>(3 * s.key_width + 2 * s.value_width);
}

std::array<uint32_t, 3> attention_gradient_outputs(const Attributes& attributes) {
  return {0, to_u32(static_cast<uint64_t>(attributes.integer("k_output"))),
          to_u32(static_cast<uint64_t>(attributes.integer("v_output")))};
}

AttentionRows attention_rows_of(const LowerContext& context, uint32_t input) {
  return {.stride = to_u32(context.input(input).shape[2]),
          .offset = to_u32(columns_of(context.attributes(), input).begin)};
}

bool lies_in_words(const LowerContext& context, uint32_t input, AttentionRows rows, uint64_t width) {
  return (rows.stride | rows.offset | width) % 2 == 0 && !refuse_half_word(context.input(input));
}

void clear_unread_columns(const LowerContext& context, Lowered& lowered) {
  const auto outputs = attention_gradient_outputs(context.attributes());
  for (uint32_t output = 0; output <= std::ranges::max(outputs); ++output) {
    uint64_t written = 0;
    for (uint32_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == output) written += columns_of(context.attributes(), i).width();
    }
    const Shape& shape = context.output(output).shape;
    if (written == shape[-1]) continue;
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader("zeros", "f32");
    dispatch.constants = {{"local_size", workgroup_size(context.device(), 256)}};
    dispatch.operands = {Operand::output(output)};
    dispatch.set_params(shader::ZerosParams{to_u32(shape.elements())});
    dispatch.groups =
        spread_groups(context.device(), ceil_div(shape.elements(), dispatch.constant("local_size")));
  }
}

Operand append_query_statistics(const LowerContext& context, Lowered& lowered) {
  const AttentionSizes sizes = attention_sizes(context);
  const uint64_t count = sizes.batch * sizes.heads * sizes.queries;
  const Operand statistics = Operand::scratch(to_u32(lowered.scratch.size()));
  lowered.scratch.push_back(count * 2 * sizeof(float));
  Dispatch& sums = lowered.dispatches.emplace_back();
  sums.shader = &find_shader("attention_gradient_deltas", "f32");
  sums.constants = {{"local_size", workgroup_size(context.device(), 64)},
                    {"value_width", to_u32(sizes.value_width)}};
  sums.operands = {Operand::input(attention_gradient_input::out),
                   Operand::input(attention_gradient_input::out_gradient),
                   Operand::input(attention_gradient_input::lse), statistics};
  sums.set_params(shader::AttentionDeltasParams{
      .count = to_u32(count), .queries = to_u32(sizes.queries), .heads = to_u32(sizes.heads)});
  sums.groups = spread_groups(context.device(), ceil_div(count, sums.constant("local_size")));
  return statistics;
}

AttentionSide query_side(const LowerContext& context) {
  using namespace attention_gradient_input;
  return {.tokens = attention_sizes(context).queries,
          .keys_at = attention_input::q,
          .values_at = out_gradient,
          .keys = attention_rows_of(context, attention_input::q),
          .values = {to_u32(context.input(out_gradient).shape[2]), 0}};
}

AttentionSide key_side(const LowerContext& context) {
  return {.tokens = attention_sizes(context).keys,
          .keys_at = attention_input::k,
          .values_at = attention_input::v,
          .keys = attention_rows_of(context, attention_input::k),
          .values = attention_rows_of(context, attention_input::v)};
}

bool sides_by_four(const AttentionSizes& sizes, const AttentionSide& own, const AttentionSide& other) {
  uint64_t all = sizes.key_width | sizes.value_width;
  for (const AttentionRows& rows : {own.keys, own.values, other.keys, other.values}) {
    all |= rows.stride | rows.offset;
  }
  return all % 4 == 0;
}

shader::AttentionGradientParams attention_gradient_params(const LowerContext& context,
                                                          const AttentionSide& own,
                                                          const AttentionSide& other, uint64_t blocks) {
  const AttentionDrops dropping = attention_drops(context.attributes());
  return {.own = to_u32(own.tokens),
          .others = to_u32(other.tokens),
          .heads = to_u32(attention_sizes(context).heads),
          .own_key_stride = own.keys.stride,
          .own_key_offset = own.keys.offset,
          .own_value_stride = own.values.stride,
          .own_value_offset = own.values.offset,
          .other_key_stride = other.keys.stride,
          .other_key_offset = other.keys.offset,
          .other_value_stride = other.values.stride,
          .other_value_offset = other.values.offset,
          .scale = static_cast<float>(context.attributes().number("scale")),
          .blocks = to_u32(blocks),
          .drop_stream = dropping.stream,
          .drop_threshold = dropping.threshold,
          .drop_factor = dropping.factor};
}

const OpDef op_attention_gradient{"attention_gradient", infer_attention_gradient, attention_gradient_flops,
                                  kernels, attention_gradient_cases};

AttentionGradients attention_gradient(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v,
                                      ValueId out, ValueId lse, ValueId out_gradient,
                                      const AttentionOptions& options) {
  return attention_gradient(graph, std::move(name), q, k, v, out, lse, out_gradient,
                            attention_attributes(options), options.step, relative_bias_of(options));
}

AttentionGradients attention_gradient(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v,
                                      ValueId out, ValueId lse, ValueId out_gradient,
                                      const Attributes& attributes, ValueId step, ValueId bias) {
  const std::array values{q, k, v};
  std::array<int64_t, 3> outputs{};
  int64_t declared = 1;
  for (uint32_t i = 1; i < values.size(); ++i) {
    int64_t shared = -1;
    bool free = true;
    for (uint32_t j = 0; j < i; ++j) {
      if (values[j] != values[i]) continue;
      shared = outputs[j];
      free = free && !columns_of(attributes, i).meets(columns_of(attributes, j));
    }
    outputs[i] = shared >= 0 && free ? shared : declared++;
  }
  Attributes own = attributes;
  own.set("k_output", outputs[1]);
  own.set("v_output", outputs[2]);
  std::vector<ValueId> inputs{q, k, v, out, lse, out_gradient};
  push_attention_extras(own, step, bias, inputs);
  const auto made = graph.add(op_attention_gradient, std::move(name), std::move(inputs), std::move(own));
  return {
      .q = made[0], .k = made[static_cast<size_t>(outputs[1])], .v = made[static_cast<size_t>(outputs[2])]};
}

}  // namespace vitrine
