#include "runtime/ops/attention/grid_bias.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/attention/grid_bias.h"

namespace vitrine {
namespace {

template <typename Context>
GridBiasOptions options_of(const Context& c) {
  const auto attribute = [&](std::string_view name) {
    return static_cast<uint64_t>(c.attributes().integer(name));
  };
  return {attribute("heads"), attribute("key_width"), attribute("q_offset"), attribute("height"),
          attribute("width")};
}

void infer(InferContext& c) {
  const Value& q = c.input(0);
  const GridBiasOptions o = options_of(c);
  constexpr uint64_t sensible = 1u << 14;
  c.require(o.heads > 0 && o.heads < sensible && o.key_width > 0 && o.key_width < sensible && o.height > 0 &&
                o.height < sensible && o.width > 0 && o.width < sensible && o.q_offset < (1u << 30),
            std::to_string(o.heads) + " heads of " + std::to_string(o.key_width) + " and a grid of " +
                std::to_string(o.height) + " x " + std::to_string(o.width) +
                " were asked for, expected at least 1 and less than 16384 of each");
  const uint64_t tokens = o.height * o.width, columns = o.q_offset + o.heads * o.key_width;
  c.require(is_computable(q.dtype) && q.shape.rank() == 3 && q.shape[1] == tokens && q.shape[2] >= columns,
            "q is " + std::string(name_of(q.dtype)) + " " + q.shape.to_string() +
                ", expected f32 or f16 [images, " + std::to_string(tokens) + ", at least " +
                std::to_string(columns) + "]");
  const auto require_table = [&](uint32_t input, const char* what, uint64_t extent) {
    const Value& table = c.input(input);
    const Shape expected{2 * extent - 1, o.key_width};
    c.require(table.dtype == DType::f32 && table.shape == expected,
              "the relative positions of " + std::string(what) + " are " + std::string(name_of(table.dtype)) +
                  " " + table.shape.to_string() + ", expected f32 " + expected.to_string());
  };
  require_table(1, "rows", o.height);
  require_table(2, "columns", o.width);
  c.output({q.shape[0], o.heads, tokens, o.height + o.width}, DType::f32);
}

double flops(const LowerContext& c) {
  return 2.0 * static_cast<double>(c.output(0).shape.elements() * options_of(c).key_width);
}

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "grid_bias", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const GridBiasOptions o = options_of(c);
  const uint64_t count = c.output(0).shape.elements();
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("grid_bias", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"heads", to_u32(o.heads)},
                        {"key_width", to_u32(o.key_width)},
                        {"height", to_u32(o.height)},
                        {"width", to_u32(o.width)}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::input(2), Operand::output(0)};
  dispatch.set_params(shader::GridBiasParams{to_u32(count), to_u32(c.input(0).shape[2]), to_u32(o.q_offset)});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_grid_bias{"grid_bias", infer, flops, kernels, grid_bias_cases};

ValueId grid_bias(Graph& graph, std::string name, ValueId q, ValueId rows, ValueId columns,
                  const GridBiasOptions& options) {
  return graph.add(op_grid_bias, std::move(name), {q, rows, columns},
                   {{"heads", static_cast<int64_t>(options.heads)},
                    {"key_width", static_cast<int64_t>(options.key_width)},
                    {"q_offset", static_cast<int64_t>(options.q_offset)},
                    {"height", static_cast<int64_t>(options.height)},
                    {"width", static_cast<int64_t>(options.width)}})[0];
}

}  // namespace vitrine
