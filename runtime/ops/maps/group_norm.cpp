#include "runtime/ops/maps/group_norm.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/maps/group_norm.h"

namespace vitrine {
namespace {

constexpr uint32_t x_input = 0, gamma_input = 1, beta_input = 2;
constexpr uint64_t slab_pixels = 64;

uint64_t groups_of(const Attributes& attributes) {
  return static_cast<uint64_t>(attributes.integer("groups"));
}

void infer(InferContext& c) {
  const Value& x = c.input(x_input);
  c.require(x.shape.rank() == 3 && is_computable(x.dtype),
            "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() +
                ", expected f32 or f16 [images, pixels, channels]");
  const uint64_t groups = groups_of(c.attributes()), channels = x.shape[2];
  c.require(groups > 0 && channels % groups == 0, std::to_string(channels) + " channels can't be cut into " +
                                                      std::to_string(groups) + " groups of one size");
  for (const uint32_t i : {gamma_input, beta_input}) {
    const Value& vector = c.input(i);
    c.require(vector.shape == Shape{channels} && vector.dtype == DType::f32,
              "'" + vector.name + "' is " + std::string(name_of(vector.dtype)) + " " +
                  vector.shape.to_string() + ", expected f32 [" + std::to_string(channels) + "]");
  }
  const auto out = static_cast<DType>(c.attributes().integer("out"));
  c.require(is_computable(out), "the result can't be " + std::string(name_of(out)) + ", only f32 or f16");
  c.output(x.shape, out);
}

// Mean, distance and square, normalization, scale and shift.
double flops(const LowerContext& c) { return 8.0 * static_cast<double>(c.input(x_input).shape.elements()); }

std::string variant(const LowerContext& c) {
  return storage_variant(c.input(x_input).dtype, c.output(0).dtype);
}

uint64_t group_width(const LowerContext& c) { return c.input(x_input).shape[2] / groups_of(c.attributes()); }

uint32_t activation_of(const LowerContext& c) {
  return to_u32(static_cast<uint64_t>(c.attributes().integer("activation")));
}

shader::GroupNormParams params(const LowerContext& c, uint64_t count) {
  const uint64_t pixels = c.input(x_input).shape[1];
  return {to_u32(count), to_u32(pixels), to_u32(ceil_div(pixels, slab_pixels)),
          static_cast<float>(c.attributes().number("eps"))};
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "group_norm", variant(c));
}

Lowered lower_simple(const LowerContext& c) {
  const Shape& x = c.input(x_input).shape;
  const uint64_t count = x[0] * groups_of(c.attributes());
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("group_norm", variant(c));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), x[1] * group_width(c))},
                        {"channels", to_u32(x[2])},
                        {"group_width", to_u32(group_width(c))},
                        {"activation", activation_of(c)}};
  dispatch.operands = {Operand::input(x_input), Operand::input(gamma_input), Operand::input(beta_input),
                       Operand::output(0)};
  dispatch.set_params(params(c, count));
  dispatch.groups = spread_groups(c.device(), count);
  return lowered;
}

std::optional<std::string> refuse_slabs(const LowerContext& c) {
  if (auto reason = refuse(c, "group_norm_slabs", name_of(c.input(x_input).dtype))) return reason;
  if (auto reason = refuse(c, "group_norm_merge", "f32")) return reason;
  return refuse(c, "group_norm_apply", variant(c));
}

double prefers_slabs(const LowerContext&) { return 2; }

Lowered lower_slabs(const LowerContext& c) {
  const Shape& x = c.input(x_input).shape;
  const uint64_t groups = groups_of(c.attributes()), slabs = ceil_div(x[1], slab_pixels);
  const auto width = to_u32(group_width(c));
  Lowered lowered;
  lowered.scratch = {x[0] * slabs * groups * 2 * sizeof(float), x[0] * groups * 2 * sizeof(float)};
  const auto add = [&](std::string_view shader, std::string_view variant, uint64_t count,
                       std::vector<NamedConstant> constants, std::vector<Operand> operands) {
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader(shader, variant);
    dispatch.constants = std::move(constants);
    dispatch.add_constants({{"local_size", workgroup_size(c.device(), 64)}, {"group_width", width}});
    dispatch.operands = std::move(operands);
    dispatch.set_params(params(c, count));
    dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  };
  add("group_norm_slabs", name_of(c.input(x_input).dtype), x[0] * slabs * groups,
      {{"channels", to_u32(x[2])}, {"slab_pixels", slab_pixels}},
      {Operand::input(x_input), Operand::scratch(0)});
  add("group_norm_merge", "f32", x[0] * groups, {{"groups", to_u32(groups)}, {"slab_pixels", slab_pixels}},
      {Operand::scratch(0), Operand::scratch(1)});
  add("group_norm_apply", variant(c), x.elements(),
      {{"channels", to_u32(x[2])}, {"activation", activation_of(c)}},
      {Operand::input(x_input), Operand::input(gamma_input), Operand::input(beta_input), Operand::scratch(1),
       Operand::output(0)});
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"slabs", Target::any, refuse_slabs, prefers_slabs, lower_slabs}};

}  // namespace

const OpDef op_group_norm{"group_norm", infer, flops, kernels, group_norm_cases};

ValueId group_norm(Graph& graph, std::string name, ValueId x, ValueId gamma, ValueId beta,
                   const GroupNormOptions& options) {
  const DType out = options.out.value_or(graph.value(x).dtype);
  return graph.add(op_group_norm, std::move(name), {x, gamma, beta},
                   {{"groups", static_cast<int64_t>(options.groups)},
                    {"eps", options.eps},
                    {"activation", static_cast<int64_t>(options.activation)},
                    {"out", static_cast<int64_t>(out)}})[0];
}

}  // namespace vitrine
