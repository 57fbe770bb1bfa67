#include "runtime/ops/tokens/assemble_tokens_gradient.h"

#include <array>
#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/tokens/assemble_tokens.h"
#include "shaders/tokens/assemble_tokens_gradient.h"

namespace vitrine {
namespace {

constexpr std::array<std::string_view, 5> parts{"patches", "class", "distillation", "registers", "positions"};
// The shader's constants that say which are asked for.
constexpr std::array<std::string_view, 5> to_parts{"to_patches", "to_class", "to_distillation",
                                                   "to_registers", "to_positions"};
enum Part : size_t { patches, class_token, distillation_token, registers, positions };

std::string wants(size_t part) { return "wants_" + std::string(parts[part]); }

template <typename Context>
TokenLayout layout_of(const Context& c) {
  const Attributes& a = c.attributes();
  return {a.flag("class"), a.flag("distillation"), static_cast<uint64_t>(a.integer("registers")),
          static_cast<uint64_t>(a.integer("positions"))};
}

uint64_t prefix_of(const TokenLayout& layout) {
  return uint64_t{layout.class_token} + uint64_t{layout.distillation_token} + layout.registers;
}

void infer(InferContext& c) {
  const Value& gradient = c.input(0);
  c.require(gradient.dtype == DType::f32 && gradient.shape.rank() == 3,
            "the gradient is " + std::string(name_of(gradient.dtype)) + " " + gradient.shape.to_string() +
                ", f32 [images, tokens, dims] was expected");
  const TokenLayout layout = layout_of(c);
  const uint64_t prefix = prefix_of(layout), tokens = gradient.shape[1], dims = gradient.shape[2];
  c.require(tokens > prefix,
            std::to_string(tokens) + " tokens hold no patch behind " + std::to_string(prefix));
  c.require(layout.positions == 0 || layout.positions == tokens || layout.positions == tokens - prefix ||
                layout.positions == tokens - layout.registers,
            "there are " + std::to_string(layout.positions) + " positions for " + std::to_string(tokens) +
                " tokens");
  // How many of the sequence's tokens each part is, in all images or in each.
  const std::array<uint64_t, 5> tokens_of{tokens - prefix, layout.class_token, layout.distillation_token,
                                          layout.registers, layout.positions};
  size_t wanted = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    if (!c.attributes().flag(wants(part))) continue;
    ++wanted;
    c.require(tokens_of[part] > 0, "there are no " + std::string(parts[part]));
    const Shape shape = part == patches ? Shape{gradient.shape[0], tokens_of[part], dims}
                        : part == class_token || part == distillation_token ? Shape{dims}
                                                                            : Shape{tokens_of[part], dims};
    c.output(shape, DType::f32, parts[part]);
  }
  c.require(wanted > 0, "no gradient is asked for");
}

double flops(const LowerContext& c) { return static_cast<double>(c.input(0).shape.elements()); }

Lowered lower_as(const LowerContext& c, std::string_view variant, uint32_t elements_each) {
  const TokenLayout layout = layout_of(c);
  const Shape& gradient = c.input(0).shape;
  const uint64_t prefix = prefix_of(layout), tokens = gradient[1], dims = gradient[2];
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("assemble_tokens_gradient", variant);
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 64)}, {"dims", to_u32(dims)}};
  dispatch.operands = {Operand::input(0)};
  uint32_t output = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    const bool wanted = c.attributes().flag(wants(part));
    dispatch.add_constants({{to_parts[part], wanted}});
    dispatch.operands.push_back(wanted ? Operand::output(output++) : Operand::nothing());
  }
  dispatch.add_constants({{"has_class", layout.class_token}});
  const bool only_patches = layout.positions == tokens - prefix;
  const bool skips = !only_patches && layout.positions != tokens;
  dispatch.set_params(
      shader::AssembleTokensGradientParams{.images = to_u32(gradient[0]),
                                           .tokens = to_u32(tokens),
                                           .prefix = to_u32(prefix),
                                           .registers = to_u32(layout.registers),
                                           .position_from = only_patches ? to_u32(prefix) : 0,
                                           .position_skips = skips ? to_u32(layout.registers) : 0});
  dispatch.groups =
      spread_groups(c.device(), ceil_div(tokens * dims / elements_each, dispatch.constant("local_size")));
  return lowered;
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "assemble_tokens_gradient", "f32");
}
Lowered lower_simple(const LowerContext& c) { return lower_as(c, "f32", 1); }

std::optional<std::string> refuse_quads(const LowerContext& c) {
  if (auto reason = refuse(c, "assemble_tokens_gradient", "f32_quads")) return reason;
  for (size_t i = 0; i < c.node().outputs.size(); ++i) {
    if (auto reason = refuse_half_word(c.output(i))) return reason;
  }
  if (auto reason = refuse_half_word(c.input(0))) return reason;
  const uint64_t dims = c.input(0).shape[2];
  if (dims % 4 == 0) return std::nullopt;
  return "tokens of " + std::to_string(dims) + " elements can't be moved by fours";
}
Lowered lower_quads(const LowerContext& c) { return lower_as(c, "f32_quads", 4); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"cpu_quads", Target::cpu, refuse_quads, prefer_on_cpu, lower_quads}};

}  // namespace

const OpDef op_assemble_tokens_gradient{"assemble_tokens_gradient", infer, flops, kernels,
                                        assemble_tokens_gradient_cases};

TokenGradients assemble_tokens_gradient(Graph& graph, std::string name, ValueId gradient,
                                        const TokenLayout& layout, const TokenGradientsWanted& wanted) {
  Attributes attributes{{"class", int64_t{layout.class_token}},
                        {"distillation", int64_t{layout.distillation_token}},
                        {"registers", static_cast<int64_t>(layout.registers)},
                        {"positions", static_cast<int64_t>(layout.positions)}};
  TokenGradients result;
  const std::array<std::pair<bool, ValueId*>, 5> asked{
      {{wanted.patches, &result.patches},
       {wanted.class_token, &result.class_token},
       {wanted.distillation_token, &result.distillation_token},
       {wanted.registers, &result.registers},
       {wanted.positions, &result.positions}}};
  for (size_t part = 0; part < parts.size(); ++part) {
    if (asked[part].first) attributes.set(wants(part), int64_t{1});
  }
  const auto outputs =
      graph.add(op_assemble_tokens_gradient, std::move(name), {gradient}, std::move(attributes));
  size_t next = 0;
  for (const auto& [is_asked, value] : asked) {
    if (is_asked) *value = outputs[next++];
  }
  return result;
}

void differentiate_assemble_tokens(GradContext& c) {
  for (size_t part = 0; part < parts.size(); ++part) {
    if (c.has_input(part) && c.input_value(part).dtype != DType::f32)
      c.refuse("only tokens in f32 have a derivative");
  }
  TokenLayout layout{.class_token = c.has_input(class_token),
                     .distillation_token = c.has_input(distillation_token)};
  if (c.has_input(registers)) layout.registers = c.input_value(registers).shape[0];
  if (c.has_input(positions)) layout.positions = c.input_value(positions).shape[0];
  const TokenGradients found =
      assemble_tokens_gradient(c.graph(), c.name("parts"), c.gradient(0), layout,
                               {c.wants(patches), c.wants(class_token), c.wants(distillation_token),
                                c.wants(registers), c.wants(positions)});
  const std::array<ValueId, 5> values{found.patches, found.class_token, found.distillation_token,
                                      found.registers, found.positions};
  for (size_t part = 0; part < parts.size(); ++part) {
    if (values[part]) c.add(part, values[part]);
  }
}

}  // namespace vitrine
