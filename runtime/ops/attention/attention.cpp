#include "runtime/ops/attention/attention.h"

#include <array>
#include <cmath>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/attention/attention_bias_gradient.h"
#include "runtime/ops/attention/attention_gradient.h"
#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/elementwise/dropout.h"
#include "runtime/ops/elementwise/random_mask.h"
#include "runtime/ops/lowering.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr std::array kernels{
    KernelDef{"tiled", Target::any, refuse_attention_tiled, prefer_attention_tiled, lower_attention_tiled,
              attention_tiled_configurations},
    KernelDef{"cpu_lanes", Target::cpu, refuse_attention_lanes, prefer_attention_lanes, lower_attention_lanes,
              attention_lanes_configurations, nullptr, attention_lanes_write},
    KernelDef{"coopmat", Target::matrix_units, refuse_attention_coopmat, prefer_attention_coopmat,
              lower_attention_coopmat, attention_coopmat_configurations},
    unproven({"coopmat_columns", Target::matrix_units, refuse_attention_columns, prefer_attention_columns,
              lower_attention_columns, attention_columns_configurations}),
    KernelDef{"coopmat_flexible", Target::matrix_units, refuse_attention_flexible, prefer_attention_flexible,
              lower_attention_flexible, attention_flexible_configurations},
    unproven({"coopmat2", Target::matrix_units, refuse_attention_coopmat2, prefer_attention_coopmat2,
              lower_attention_coopmat2, attention_coopmat2_configurations}),
};

void backward(GradContext& c) {
  if (is_attention_causal(c.attributes())) c.refuse("it is causal, which has no derivative here");
  if (has_bias_rows(c.attributes())) c.refuse("it has rows of biases, which have no derivative here");
  if (c.node().outputs.size() > 1 && c.gradient(1)) {
    c.refuse("something depends on its log-sum-exp, which has no derivative here");
  }
  const ValueId q = c.input(attention_input::q), k = c.input(attention_input::k),
                v = c.input(attention_input::v);
  const auto optional = [&](uint32_t i) { return c.has_input(i) ? c.input(i) : ValueId{}; };
  const ValueId step = optional(attention_input::step), bias = optional(attention_input::bias);
  ValueId out, lse;
  if (c.attributes().flag("store_lse")) {
    out = c.output(0);
    lse = c.output(1);
  } else {
    // Nobody kept the log-sum-exp: attention runs once more.
    Attributes attributes = c.attributes();
    attributes.set("store_lse", int64_t{1});
    std::vector<ValueId> inputs{q, k, v};
    push_attention_extras(attributes, step, bias, inputs);
    const auto again = c.graph().add(op_attention, c.name("again"), std::move(inputs), std::move(attributes));
    out = again[0];
    lse = again[1];
  }
  const AttentionGradients gradients = attention_gradient(c.graph(), c.name("qkv"), q, k, v, out, lse,
                                                          c.gradient(0), c.attributes(), step, bias);
  c.add(attention_input::q, gradients.q);
  if (gradients.k != gradients.q) c.add(attention_input::k, gradients.k);
  if (gradients.v != gradients.q && gradients.v != gradients.k) c.add(attention_input::v, gradients.v);
  if (bias && c.wants(attention_input::bias)) {
    c.add(attention_input::bias, attention_bias_gradient(c.graph(), c.name("bias"), q, k, v, out, lse,
                                                         c.gradient(0), c.attributes(), step, bias));
  }
}

}  // namespace

double AttentionSizes::flops() const {
  return 2.0 * static_cast<double>(batch * heads * queries) * static_cast<double>(keys) *
         static_cast<double>(key_width + value_width);
}

double AttentionSizes::tensor_bytes() const {
  return static_cast<double>(batch * heads * bytes) * static_cast<double>(queries + keys) *
         static_cast<double>(key_width + value_width);
}

double AttentionSizes::moved_bytes(uint64_t block_q) const {
  return static_cast<double>(bytes) * static_cast<double>((keys + block_q) * (key_width + value_width));
}

AttentionSizes attention_sizes(const LowerContext& context) {
  const Shape& q = context.input(attention_input::q).shape;
  const auto attribute = [&](std::string_view name) {
    return static_cast<uint64_t>(context.attributes().integer(name));
  };
  return {.batch = q[0],
          .queries = q[1],
          .keys = context.input(attention_input::k).shape[1],
          .heads = attribute("heads"),
          .key_width = attribute("key_width"),
          .value_width = attribute("value_width"),
          .bytes = size_of(context.input(attention_input::q).dtype)};
}

Attributes attention_attributes(const AttentionOptions& options) {
  const auto integer = [](uint64_t value) { return static_cast<int64_t>(value); };
  const uint64_t value_width = options.value_width != 0 ? options.value_width : options.key_width;
  const double scale =
      options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(options.key_width));
  Attributes attributes{{"heads", integer(options.heads)},
                        {"key_width", integer(options.key_width)},
                        {"value_width", integer(value_width)},
                        {"q_offset", integer(options.q_offset)},
                        {"k_offset", integer(options.k_offset)},
                        {"v_offset", integer(options.v_offset)},
                        {"scale", scale},
                        {"store_lse", int64_t{options.store_lse}}};
  if (options.rounded) attributes.set("rounded", int64_t{1});
  if (options.causal) attributes.set("causal", int64_t{1});
  if (options.drop_rate != 0) {
    attributes.set("rate", options.drop_rate);
    attributes.set("stream", int64_t{options.drop_stream});
  }
  set_relative_bias(attributes, options);
  return attributes;
}

void push_attention_extras(const Attributes& attributes, ValueId step, ValueId bias,
                           std::vector<ValueId>& inputs) {
  const bool drops = drops_weights(attributes), biased = has_relative_bias(attributes);
  if (drops || biased) inputs.push_back(drops ? step : ValueId{});
  if (biased) inputs.push_back(bias);
}

bool is_attention_rounded(const Attributes& attributes) { return attributes.flag("rounded"); }

bool drops_weights(const Attributes& attributes) { return attributes.has("rate"); }

AttentionDrops attention_drops(const Attributes& attributes) {
  if (!drops_weights(attributes)) return {};
  const double rate = attributes.number("rate");
  return {.stream = to_u32(static_cast<uint64_t>(attributes.integer("stream"))),
          .threshold = drop_threshold(rate),
          .factor = kept_factor(rate)};
}

std::optional<std::string> refuse_drops(const LowerContext& context) {
  if (drops_weights(context.attributes())) return "it draws no random numbers, and the weights have dropout";
  return std::nullopt;
}

bool is_attention_causal(const Attributes& attributes) { return attributes.flag("causal"); }

std::optional<std::string> refuse_causal(const LowerContext& context) {
  if (is_attention_causal(context.attributes())) return "its queries see every key, and the node is causal";
  return std::nullopt;
}

Shape infer_attention_inputs(InferContext& c) {
  constexpr std::array names{"q", "k", "v"};
  const auto attribute = [&](std::string_view name) {
    return static_cast<uint64_t>(c.attributes().integer(name));
  };
  const uint64_t heads = attribute("heads"), key_width = attribute("key_width");
  const uint64_t value_width = attribute("value_width");
  constexpr uint64_t sensible = 1u << 20;
  c.require(heads > 0 && key_width > 0 && value_width > 0 && heads < sensible && key_width < sensible &&
                value_width < sensible,
            std::to_string(heads) + " heads of width " + std::to_string(key_width) + " and " +
                std::to_string(value_width) + " were asked for");
  const Value& q = c.input(attention_input::q);
  const Value& k = c.input(attention_input::k);
  for (uint32_t i = 0; i < names.size(); ++i) {
    const Value& value = c.input(i);
    c.require(is_computable(value.dtype) && value.dtype == q.dtype,
              std::string(names[i]) + " is " + std::string(name_of(value.dtype)) + " and q " +
                  std::string(name_of(q.dtype)) + ", all f32 or all f16 was expected");
    c.require(
        value.shape.rank() == 3 && value.shape[0] == q.shape[0],
        std::string(names[i]) + " is " + value.shape.to_string() + ", [batch, tokens, width] was expected");
    const uint64_t offset = attribute(std::string(names[i]) + "_offset");
    const uint64_t width = heads * (i == attention_input::v ? value_width : key_width);
    c.require(offset <= value.shape[2] && width <= value.shape[2] - offset,
              std::string(names[i]) + " is " + value.shape.to_string() + ", too narrow for " +
                  std::to_string(width) + " elements from " + std::to_string(offset) + " on");
  }
  c.require(c.input(attention_input::v).shape[1] == k.shape[1],
            "k is " + k.shape.to_string() + " and v " + c.input(attention_input::v).shape.to_string() +
                ", the same number of tokens was expected");
  c.require(!is_attention_rounded(c.attributes()) || q.dtype == DType::f32,
            "q is " + std::string(name_of(q.dtype)) + ", f32 was expected where it is to be rounded");
  if (drops_weights(c.attributes())) require_drop_rate(c);
  return {q.shape[0], q.shape[1], heads * value_width};
}

void infer_attention(InferContext& c) {
  const Shape shape = infer_attention_inputs(c);
  if (drops_weights(c.attributes())) require_step(c, attention_input::step);
  const uint64_t keys = c.input(attention_input::k).shape[1];
  const auto heads = static_cast<uint64_t>(c.attributes().integer("heads"));
  require_relative_bias(c, attention_input::bias, heads, shape[1], keys);
  c.require(!is_attention_causal(c.attributes()) || keys == shape[1],
            counted(keys, "key") + " for " + std::to_string(shape[1]) +
                " queries, as many were expected where it is causal");
  c.output(shape, c.input(attention_input::q).dtype);
  if (c.attributes().flag("store_lse")) {
    c.output({shape[0], heads, shape[1]}, DType::f32, "lse");
  }
}

double attention_flops(const LowerContext& context) { return attention_sizes(context).flops(); }

shader::AttentionParams attention_params(const LowerContext& context, uint64_t blocks) {
  const AttentionSizes sizes = attention_sizes(context);
  const AttentionDrops drops = attention_drops(context.attributes());
  const auto offset = [&](std::string_view name) {
    return to_u32(static_cast<uint64_t>(context.attributes().integer(name)));
  };
  return {.queries = to_u32(sizes.queries),
          .keys = to_u32(sizes.keys),
          .heads = to_u32(sizes.heads),
          .key_width = to_u32(sizes.key_width),
          .value_width = to_u32(sizes.value_width),
          .q_stride = to_u32(context.input(attention_input::q).shape[2]),
          .k_stride = to_u32(context.input(attention_input::k).shape[2]),
          .v_stride = to_u32(context.input(attention_input::v).shape[2]),
          .q_offset = offset("q_offset"),
          .k_offset = offset("k_offset"),
          .v_offset = offset("v_offset"),
          .scale = static_cast<float>(context.attributes().number("scale")),
          .blocks = to_u32(blocks),
          .drop_stream = drops.stream,
          .drop_threshold = drops.threshold,
          .drop_factor = drops.factor};
}

const OpDef op_attention{"attention",     infer_attention, attention_flops, kernels,
                         attention_cases, backward,        attention_sample};

AttentionResult attention(Graph& graph, std::string name, ValueId q, ValueId k, ValueId v,
                          const AttentionOptions& options) {
  std::vector<ValueId> inputs{q, k, v};
  Attributes attributes = attention_attributes(options);
  push_attention_extras(attributes, options.step, relative_bias_of(options), inputs);
  const auto outputs = graph.add(op_attention, std::move(name), std::move(inputs), std::move(attributes));
  return {.out = outputs[0], .lse = options.store_lse ? outputs[1] : ValueId{}};
}

}  // namespace vitrine
