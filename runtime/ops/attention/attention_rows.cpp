#include "runtime/ops/attention/attention_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/lowering.h"
#include "shaders/attention/attention_rows.h"

namespace vitrine {
namespace {

constexpr uint32_t input_q = 0, input_k = 1, input_lse = 2, input_bias = 3;

struct Sizes {
  uint64_t batch, queries, keys, heads, key_width, first_row, rows;
  bool mean_heads, mean_rows;
};

template <typename Context>
Sizes sizes_of(const Context& c) {
  const auto attribute = [&](std::string_view name) {
    return static_cast<uint64_t>(c.attributes().integer(name));
  };
  const Shape &q = c.input(input_q).shape, &k = c.input(input_k).shape;
  const uint64_t first = attribute("first_row"), rows = attribute("rows");
  return {.batch = q[0],
          .queries = q[1],
          .keys = k[1],
          .heads = attribute("heads"),
          .key_width = attribute("key_width"),
          .first_row = first,
          .rows = rows != 0 ? rows : q[1] - std::min(first, q[1]),
          .mean_heads = c.attributes().flag("mean_heads"),
          .mean_rows = c.attributes().flag("mean_rows")};
}

void infer(InferContext& c) {
  const Value &q = c.input(input_q), &k = c.input(input_k), &lse = c.input(input_lse);
  for (const Value* value : {&q, &k}) {
    c.require(value->shape.rank() == 3 && is_computable(value->dtype) && value->dtype == q.dtype &&
                  value->shape[0] == q.shape[0],
              "q is " + std::string(name_of(q.dtype)) + " " + q.shape.to_string() + " and k " +
                  std::string(name_of(k.dtype)) + " " + k.shape.to_string() +
                  ", expected [batch, tokens, width], both f32 or both f16");
  }
  const Sizes s = sizes_of(c);
  constexpr uint64_t sensible = 1u << 20;
  c.require(s.heads > 0 && s.key_width > 0 && s.heads < sensible && s.key_width < sensible,
            std::to_string(s.heads) + " heads of width " + std::to_string(s.key_width) + " were asked for");
  for (const auto& [value, name] : {std::pair{&q, "q"}, std::pair{&k, "k"}}) {
    const auto offset = static_cast<uint64_t>(c.attributes().integer(std::string(name) + "_offset"));
    const uint64_t width = s.heads * s.key_width;
    c.require(offset <= value->shape[2] && width <= value->shape[2] - offset,
              std::string(name) + " is " + value->shape.to_string() + ", too narrow for " +
                  std::to_string(width) + " elements from " + std::to_string(offset) + " on");
  }
  const Shape stored{s.batch, s.heads, s.queries};
  c.require(lse.dtype == DType::f32 && lse.shape == stored, "lse is " + std::string(name_of(lse.dtype)) +
                                                                " " + lse.shape.to_string() +
                                                                ", expected f32 " + stored.to_string());
  c.require(s.rows > 0 && s.rows <= s.queries && s.first_row <= s.queries - s.rows,
            std::to_string(s.rows) + " rows from number " + std::to_string(s.first_row) +
                " on were asked for, of " + std::to_string(s.queries));
  require_relative_bias(c, input_bias, s.heads, s.queries, s.keys);
  std::vector<uint64_t> dims{s.batch};
  if (!s.mean_heads) dims.push_back(s.heads);
  dims.insert(dims.end(), {s.mean_rows ? 1 : s.rows, s.keys});
  c.output(Shape(dims), DType::f32);
}

double flops(const LowerContext& c) {
  const Sizes s = sizes_of(c);
  return 2.0 * static_cast<double>(s.batch * s.heads * s.rows) * static_cast<double>(s.keys * s.key_width);
}

std::string_view variant(const LowerContext& c) { return name_of(c.input(input_q).dtype); }

// The shader, its operands and its parameters.
Dispatch dispatch_of(const LowerContext& c, std::string_view shader, std::string_view variant) {
  const Sizes s = sizes_of(c);
  const auto offset = [&](std::string_view name) {
    return to_u32(static_cast<uint64_t>(c.attributes().integer(name)));
  };
  Dispatch dispatch;
  dispatch.shader = &find_shader(shader, variant);
  dispatch.operands = {Operand::input(input_q), Operand::input(input_k), Operand::input(input_lse),
                       relative_bias_operand(c, input_bias), Operand::output(0)};
  dispatch.set_params(shader::AttentionRowsParams{.queries = to_u32(s.queries),
                                                  .keys = to_u32(s.keys),
                                                  .heads = to_u32(s.heads),
                                                  .q_stride = to_u32(c.input(input_q).shape[2]),
                                                  .k_stride = to_u32(c.input(input_k).shape[2]),
                                                  .q_offset = offset("q_offset"),
                                                  .k_offset = offset("k_offset"),
                                                  .scale = static_cast<float>(c.attributes().number("scale")),
                                                  .first_row = to_u32(s.first_row),
                                                  .rows = to_u32(s.rows),
                                                  .count = to_u32(c.output(0).shape.elements())});
  return dispatch;
}

// ---- simple: an invocation an element, any device ---------------------------------------------------

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "attention_rows", variant(c));
}

Lowered lower_simple(const LowerContext& c) {
  const Sizes s = sizes_of(c);
  Dispatch dispatch = dispatch_of(c, "attention_rows", variant(c));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 64)},
                        {"key_width", to_u32(s.key_width)},
                        {"mean_heads", s.mean_heads},
                        {"mean_rows", s.mean_rows}};
  add_relative_bias(c, dispatch);
  dispatch.groups =
      spread_groups(c.device(), ceil_div(c.output(0).shape.elements(), dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

// ---- cpu_lanes: a key a lane, devices that are a CPU -----------------------------------------------

// Everything is unrolled over the width and the rows of a step: wide heads take fewer rows, so that the
// code of a step stays within what compiles in reasonable time. Handing elements from lane to lane takes
// several times the code.
uint64_t rows_a_step(const Capabilities& device, const Sizes& s) {
  const uint64_t most = s.key_width <= 96 ? 16 : s.key_width <= 160 ? 8 : 4;
  return std::min(device.loops_gather ? most / 4 : most, s.rows);
}

uint64_t groups_y(const Capabilities& device, const Sizes& s) {
  const uint64_t steps = s.mean_rows ? 1 : ceil_div(s.rows, rows_a_step(device, s));
  return steps * (s.mean_heads ? 1 : s.heads);
}

std::string lanes_variant(const LowerContext& c) {
  return shared_rows_variant(c.device(), std::string(variant(c)));
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  if (auto reason = c.missing("attention_rows_cpu_lanes", lanes_variant(c))) return reason;
  const Sizes s = sizes_of(c);
  if (s.key_width > 256) return "its heads are wider than 256";
  const Value& bias = c.input(c.has_input(input_bias) ? input_bias : input_lse);
  for (const Value* value : {&c.input(input_q), &c.input(input_k), &bias, &c.output(0)}) {
    if (value->shape.elements() > UINT32_MAX / 4) return "a tensor is too large for 32-bit indices";
  }
  const auto& most = c.device().max_workgroup_count;
  if (groups_y(c.device(), s) > most[1] || s.batch > most[2])
    return "there are too many rows, heads or images";
  return std::nullopt;
}

// A GPU could not hold a key and the sums in one invocation's registers.
double prefer_lanes(const LowerContext& c) { return c.device().type == DeviceType::cpu ? 1 : -1; }

Lowered lower_lanes(const LowerContext& c) {
  const Sizes s = sizes_of(c);
  const uint32_t lanes = workgroup_size(c.device(), std::max(c.device().subgroup_size, 1u));
  const uint64_t block = rows_a_step(c.device(), s);
  Dispatch dispatch = dispatch_of(c, "attention_rows_cpu_lanes", lanes_variant(c));
  dispatch.subgroup_size = shared_rows_subgroup(c.device());
  dispatch.constants = {{"local_size", lanes},
                        {"key_width", to_u32(s.key_width)},
                        {"block", to_u32(block)},
                        {"summed_heads", to_u32(s.mean_heads ? s.heads : 1)},
                        {"summed_steps", to_u32(s.mean_rows ? ceil_div(s.rows, block) : 1)},
                        {"mean_rows", s.mean_rows}};
  add_relative_bias(c, dispatch);
  dispatch.groups = {to_u32(ceil_div(s.keys, lanes)), to_u32(groups_y(c.device(), s)), to_u32(s.batch)};
  dispatch.note = std::to_string(block) + " rows a step";
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr std::array kernels{KernelDef{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                             KernelDef{"cpu_lanes", Target::cpu, refuse_lanes, prefer_lanes, lower_lanes}};

}  // namespace

const OpDef op_attention_rows{"attention_rows", infer, flops, kernels, attention_rows_cases};

ValueId attention_rows(Graph& graph, std::string name, ValueId q, ValueId k, ValueId lse,
                       const AttentionOptions& attended, const AttentionRowsOptions& options) {
  if (attended.causal) {
    throw Error(ErrorCode::usage,
                "'" + name + "': found a causal attention, whose weights can't be shown yet");
  }
  const auto integer = [](uint64_t value) { return static_cast<int64_t>(value); };
  const double scale =
      attended.scale != 0 ? attended.scale : 1 / std::sqrt(static_cast<double>(attended.key_width));
  Attributes attributes{{"heads", integer(attended.heads)},
                        {"key_width", integer(attended.key_width)},
                        {"q_offset", integer(attended.q_offset)},
                        {"k_offset", integer(attended.k_offset)},
                        {"scale", scale},
                        {"first_row", integer(options.first_row)},
                        {"rows", integer(options.rows)},
                        {"mean_heads", int64_t{options.mean_heads}},
                        {"mean_rows", int64_t{options.mean_rows}}};
  set_relative_bias(attributes, attended);
  std::vector<ValueId> inputs{q, k, lse};
  if (has_relative_bias(attributes)) inputs.push_back(relative_bias_of(attended));
  return graph.add(op_attention_rows, std::move(name), std::move(inputs), std::move(attributes))[0];
}

}  // namespace vitrine
