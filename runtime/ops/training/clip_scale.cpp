#include "runtime/ops/training/clip_scale.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/training/clip_scale.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(x.dtype == DType::f32 && x.shape.elements() > 0,
            "the gradients are " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() +
                ", expected f32 and at least one element");
  const double max_norm = c.attributes().number("max_norm");
  c.require(max_norm >= 0, "max_norm is " + std::to_string(max_norm) + ", 0 or more was expected");
  c.output({2}, DType::f32);
}

double flops(const LowerContext& c) { return 2.0 * static_cast<double>(c.input(0).shape.elements()); }

// One pass where a workgroup sees everything; else each leaves its part's sum to a second one.
Lowered lower_as(const LowerContext& c, std::string_view variant, uint64_t elements_each, uint64_t max_groups,
                 uint32_t wanted_size) {
  const uint64_t count = c.input(0).shape.elements();
  const uint32_t local_size = workgroup_size(c.device(), wanted_size);
  const uint64_t groups = std::min(ceil_div(count, local_size * elements_each), max_groups);
  const double wanted = c.attributes().number("max_norm");
  const float max_norm = std::isfinite(wanted) ? static_cast<float>(wanted) : 0;
  Lowered lowered;
  const auto pass = [&](Operand from, Operand to, uint64_t elements, uint64_t results, bool first,
                        bool last) {
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader("clip_scale", variant);
    dispatch.constants = {{"local_size", local_size}, {"squares", first}, {"last", last}};
    dispatch.operands = {from, to};
    dispatch.set_params(shader::ClipScaleParams{to_u32(elements), to_u32(results), max_norm});
    dispatch.groups = spread_groups(c.device(), results);
  };
  if (groups == 1) {
    pass(Operand::input(0), Operand::output(0), count, 1, true, true);
    return lowered;
  }
  lowered.scratch.push_back(groups * sizeof(float));
  pass(Operand::input(0), Operand::scratch(0), count, groups, true, false);
  pass(Operand::scratch(0), Operand::output(0), groups, 1, false, true);
  return lowered;
}

std::optional<std::string> refuse_simple(const LowerContext& c) { return refuse(c, "clip_scale", "f32"); }

Lowered lower_simple(const LowerContext& c) { return lower_as(c, "f32", 16, 1024, 256); }

std::optional<std::string> refuse_quads(const LowerContext& c) {
  if (auto reason = refuse(c, "clip_scale", "f32_quads")) return reason;
  return refuse_half_word(c.input(0));
}

// Few groups: each costs a CPU a reduction, and more of them than cores save nothing.
Lowered lower_quads(const LowerContext& c) { return lower_as(c, "f32_quads", 256, 64, 64); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"cpu_quads", Target::cpu, refuse_quads, prefer_on_cpu, lower_quads}};

}  // namespace

const OpDef op_clip_scale{"clip_scale", infer, flops, kernels, clip_scale_cases};

ValueId clip_scale(Graph& graph, std::string name, ValueId gradients, double max_norm) {
  return graph.add(op_clip_scale, std::move(name), {gradients}, {{"max_norm", max_norm}})[0];
}

}  // namespace vitrine
