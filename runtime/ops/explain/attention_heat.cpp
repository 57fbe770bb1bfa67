#include "runtime/ops/explain/attention_heat.h"

#include <cmath>
#include <utility>

#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/explain/heat_kernels.h"
#include "runtime/ops/lowering.h"
#include "shaders/explain/attention_heat.h"

namespace vitrine {
namespace {

constexpr uint32_t input_q = 0, input_k = 1, input_lse = 2, input_choice = 3, input_colors = 4,
                   input_bias = 5;

template <typename Context>
uint64_t attribute(const Context& c, std::string_view name) {
  return static_cast<uint64_t>(c.attributes().integer(name));
}

void infer(InferContext& c) {
  const Value &q = c.input(input_q), &k = c.input(input_k), &lse = c.input(input_lse);
  const uint64_t heads = attribute(c, "heads"), key_width = attribute(c, "key_width");
  constexpr uint64_t sensible = 1u << 20;
  c.require(heads > 0 && key_width > 0 && heads < sensible && key_width < sensible,
            std::to_string(heads) + " heads of width " + std::to_string(key_width) + " were asked for");
  for (const auto& [value, name] : {std::pair{&q, "q"}, std::pair{&k, "k"}}) {
    c.require(value->shape.rank() == 3 && value->shape[0] == 1 && is_computable(value->dtype) &&
                  value->dtype == q.dtype,
              std::string(name) + " is " + std::string(name_of(value->dtype)) + " " +
                  value->shape.to_string() + ", expected [1, tokens, width], q and k both f32 or both f16");
    const uint64_t offset = attribute(c, std::string(name) + "_offset"), width = heads * key_width;
    c.require(offset <= value->shape[2] && width <= value->shape[2] - offset,
              std::string(name) + " is " + value->shape.to_string() + ", too narrow for " +
                  std::to_string(width) + " elements from " + std::to_string(offset) + " on");
  }
  const Shape stored{1, heads, q.shape[1]};
  c.require(lse.dtype == DType::f32 && lse.shape == stored, "lse is " + std::string(name_of(lse.dtype)) +
                                                                " " + lse.shape.to_string() +
                                                                ", expected f32 " + stored.to_string());
  require_relative_bias(c, input_bias, heads, q.shape[1], k.shape[1]);
  infer_heat(c, input_choice, k.shape[1], heads + 1);
}

double flops(const LowerContext& c) {
  const HeatGrid grid = heat_grid_of(c.attributes());
  return heat_flops(c) + 2.0 * static_cast<double>(attribute(c, "heads") * attribute(c, "key_width")) *
                             static_cast<double>(grid.height * grid.width);
}

std::string_view variant(const LowerContext& c) { return name_of(c.input(input_q).dtype); }

std::optional<std::string> refuses(const LowerContext& c) {
  if (auto reason = refuse(c, "attention_heat", variant(c))) return reason;
  return refuse_heat(c);
}

Lowered lower(const LowerContext& c) {
  Dispatch dispatch;
  dispatch.shader = &find_shader("attention_heat", variant(c));
  set_heat_groups(c, dispatch);
  dispatch.add_constants({{"key_width", to_u32(attribute(c, "key_width"))}});
  add_relative_bias(c, dispatch);
  dispatch.operands = {Operand::input(input_q),      Operand::input(input_k),
                       Operand::input(input_lse),    Operand::input(input_choice),
                       Operand::input(input_colors), relative_bias_operand(c, input_bias),
                       Operand::output(0),           Operand::output(1)};
  dispatch.set_params(shader::AttentionHeatParams{.queries = to_u32(c.input(input_q).shape[1]),
                                                  .heads = to_u32(attribute(c, "heads")),
                                                  .q_stride = to_u32(c.input(input_q).shape[2]),
                                                  .k_stride = to_u32(c.input(input_k).shape[2]),
                                                  .q_offset = to_u32(attribute(c, "q_offset")),
                                                  .k_offset = to_u32(attribute(c, "k_offset")),
                                                  .scale = static_cast<float>(c.attributes().number("scale")),
                                                  .first_key = to_u32(heat_grid_of(c.attributes()).first)});
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_attention_heat{"attention_heat", infer, flops, kernels, attention_heat_cases};

HeatResult attention_heat(Graph& graph, std::string name, ValueId q, ValueId k, ValueId lse, ValueId choice,
                          ValueId colors, const AttentionOptions& attended, const HeatGrid& grid) {
  const auto integer = [](uint64_t value) { return static_cast<int64_t>(value); };
  const double scale =
      attended.scale != 0 ? attended.scale : 1 / std::sqrt(static_cast<double>(attended.key_width));
  Attributes attributes{{"heads", integer(attended.heads)},
                        {"key_width", integer(attended.key_width)},
                        {"q_offset", integer(attended.q_offset)},
                        {"k_offset", integer(attended.k_offset)},
                        {"scale", scale}};
  set_heat_grid(attributes, grid);
  set_relative_bias(attributes, attended);
  std::vector<ValueId> inputs{q, k, lse, choice, colors};
  if (has_relative_bias(attributes)) inputs.push_back(relative_bias_of(attended));
  const auto outputs =
      graph.add(op_attention_heat, std::move(name), std::move(inputs), std::move(attributes));
  return {outputs[0], outputs[1]};
}

}  // namespace vitrine
