#include "runtime/ops/elementwise/magnitude.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/elementwise/magnitude.h"

namespace vitrine {
namespace {

// Elements that an invocation looks at before another workgroup is worth its place in the second pass.
constexpr uint64_t elements_each = 16;
constexpr uint64_t max_groups = 1024;

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(is_computable(x.dtype) && x.shape.elements() > 0,
            "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() +
                ", expected f32 or f16 and at least one element");
  c.output({1}, DType::f32);
}

double flops(const LowerContext&) { return 0; }

// The variants that look at x, and at what the first pass has left.
struct Variants {
  std::string_view first, second;
};

// One pass where a workgroup sees everything; else each leaves its part's maximum to a second one.
void append_passes(const LowerContext& context, Lowered& lowered, const Variants& variants, Operand from,
                   uint64_t count, Operand to) {
  const uint32_t local_size = workgroup_size(context.device(), 128);
  const uint64_t groups = std::min(ceil_div(count, local_size * elements_each), max_groups);
  const auto pass = [&](std::string_view variant, Operand x, Operand y, uint64_t elements, uint64_t results) {
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader("magnitude", variant);
    dispatch.constants = {{"local_size", local_size}};
    dispatch.operands = {x, y};
    dispatch.set_params(shader::MagnitudeParams{to_u32(elements), to_u32(results)});
    dispatch.groups = spread_groups(context.device(), results);
  };
  if (groups == 1) {
    pass(variants.first, from, to, count, 1);
    return;
  }
  const Operand parts = Operand::scratch(to_u32(lowered.scratch.size()));
  lowered.scratch.push_back(groups * sizeof(float));
  pass(variants.first, from, parts, count, groups);
  pass(variants.second, parts, to, groups, 1);
}

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "magnitude", name_of(c.input(0).dtype));
}
Lowered lower(const LowerContext& c) {
  Lowered lowered;
  append_magnitude(c, lowered, c.input(0).dtype, Operand::input(0), c.input(0).shape.elements(),
                   Operand::output(0));
  return lowered;
}

// A gradient may be larger than what a device binds.
constexpr std::string_view by_addresses = "f32_addresses";
std::optional<std::string> refuses_addresses(const LowerContext& c) {
  if (c.input(0).dtype != DType::f32) return "x is " + std::string(name_of(c.input(0).dtype)) + ", not f32";
  return refuse(c, "magnitude", by_addresses);
}
Lowered lower_addresses(const LowerContext& c) {
  Lowered lowered;
  append_passes(c, lowered, {by_addresses, by_addresses}, Operand::input(0), c.input(0).shape.elements(),
                Operand::output(0));
  return lowered;
}

constexpr KernelDef kernels[] = {
    {"simple", Target::any, refuses, no_preference, lower},
    {"addresses", Target::any, refuses_addresses, no_preference, lower_addresses}};

}  // namespace

const OpDef op_magnitude{"magnitude", infer, flops, kernels, magnitude_cases};

void append_magnitude(const LowerContext& context, Lowered& lowered, DType dtype, Operand from,
                      uint64_t count, Operand to) {
  append_passes(context, lowered, {name_of(dtype), name_of(DType::f32)}, from, count, to);
}

ValueId magnitude(Graph& graph, std::string name, ValueId x) {
  return graph.add(op_magnitude, std::move(name), {x})[0];
}

}  // namespace vitrine
