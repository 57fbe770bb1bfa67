#include "runtime/ops/tokens/assemble_tokens.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "runtime/ops/tokens/assemble_tokens_gradient.h"
#include "shaders/tokens/assemble_tokens.h"

namespace vitrine {
namespace {

using namespace token_places;

// Where each kind of token stands in the sequence.
struct Layout {
  uint64_t first_register = 0, registers = 0, first_patch = 0, tokens = 0, patches = 0;
};

template <typename Context>
Layout layout_of(const Context& c) {
  Layout layout;
  layout.first_register = uint64_t{c.has_input(class_input)} + uint64_t{c.has_input(distillation_input)};
  if (c.has_input(registers_input)) layout.registers = c.input(registers_input).shape[0];
  layout.first_patch = layout.first_register + layout.registers;
  layout.patches = c.input(patches_input).shape[1];
  layout.tokens = layout.first_patch + layout.patches;
  return layout;
}

void require_f32(const InferContext& c, uint32_t input, size_t rank, uint64_t dims,
                 const std::string& expected) {
  if (!c.has_input(input)) return;
  const Value& value = c.input(input);
  c.require(value.dtype == DType::f32 && value.shape.rank() == rank && value.shape[-1] == dims,
            "'" + value.name + "' is " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                ", expected f32 " + expected + std::to_string(dims) + "]");
}

void infer(InferContext& c) {
  const Value& patches = c.input(patches_input);
  c.require(patches.shape.rank() == 3 && is_computable(patches.dtype),
            "the patches are " + std::string(name_of(patches.dtype)) + " " + patches.shape.to_string() +
                ", expected f32 or f16 [images, patches, dims]");
  const uint64_t dims = patches.shape[2];
  require_f32(c, class_input, 1, dims, "[");
  require_f32(c, distillation_input, 1, dims, "[");
  require_f32(c, registers_input, 2, dims, "[registers, ");
  require_f32(c, positions_input, 2, dims, "[positions, ");
  const Layout layout = layout_of(c);
  if (c.has_input(positions_input)) {
    const uint64_t n = c.input(positions_input).shape[0];
    const uint64_t without_registers = layout.tokens - layout.registers;
    c.require(n == layout.patches || n == without_registers || n == layout.tokens,
              "there are " + std::to_string(n) + " positions, expected " + std::to_string(layout.patches) +
                  " (the patches), " + std::to_string(without_registers) + " (all but registers) or " +
                  std::to_string(layout.tokens) + " (all tokens)");
  }
  const auto out = static_cast<DType>(c.attributes().integer("out"));
  c.require(is_computable(out), "the result can't be " + std::string(name_of(out)) + ", only f32 or f16");
  c.output({patches.shape[0], layout.tokens, dims}, out);
}

double flops(const LowerContext& c) {
  return c.has_input(positions_input) ? static_cast<double>(c.output(0).shape.elements()) : 0.0;
}

std::string variant(const LowerContext& c) {
  return storage_variant(c.input(patches_input).dtype, c.output(0).dtype);
}

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "assemble_tokens", variant(c)); }

Lowered lower(const LowerContext& c) {
  const Layout layout = layout_of(c);
  const Shape& result = c.output(0).shape;
  shader::AssembleTokensParams params{};
  params.rows = to_u32(result.rows());
  params.tokens = to_u32(layout.tokens);
  params.patches = to_u32(layout.patches);
  params.dims = to_u32(result[-1]);
  params.registers = to_u32(layout.registers);
  params.first_register = to_u32(layout.first_register);
  params.first_patch = to_u32(layout.first_patch);
  if (c.has_input(positions_input)) {
    const uint64_t n = c.input(positions_input).shape[0];
    params.position_shift_registers = n != layout.tokens;
    params.position_from = n == layout.patches ? params.first_patch : 0;
    if (params.position_from > 0) params.position_shift_registers = 0;  // they stand before the positions
  }

  Dispatch dispatch;
  dispatch.shader = &find_shader("assemble_tokens", variant(c));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), result[-1])},
                        {"has_class", c.has_input(class_input)},
                        {"has_distillation", c.has_input(distillation_input)},
                        {"has_registers", c.has_input(registers_input)},
                        {"has_positions", c.has_input(positions_input)}};
  for (uint32_t i = patches_input; i <= positions_input; ++i) {
    dispatch.operands.push_back(c.has_input(i) ? Operand::input(i) : Operand::nothing());
  }
  dispatch.operands.push_back(Operand::output(0));
  dispatch.set_params(params);
  dispatch.groups = spread_groups(c.device(), result.rows());
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_assemble_tokens{
    "assemble_tokens", infer, flops, kernels, assemble_tokens_cases, differentiate_assemble_tokens};

ValueId assemble_tokens(Graph& graph, std::string name, ValueId patches, const TokenOptions& options) {
  return graph.add(
      op_assemble_tokens, std::move(name),
      {patches, options.class_token, options.distillation_token, options.registers, options.positions},
      {{"out", static_cast<int64_t>(options.out.value_or(DType::f32))}})[0];
}

}  // namespace vitrine
