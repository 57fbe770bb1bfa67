#include "runtime/ops/training/count_update.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/lib/step_state.h"
#include "shaders/training/count_update.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const auto require = [&](uint32_t i, const char* what, DType dtype, const Shape& shape) {
    const Value& value = c.input(i);
    c.require(value.dtype == dtype && value.shape == shape,
              std::string(what) + " is " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                  ", " + std::string(name_of(dtype)) + " " + shape.to_string() + " was expected");
  };
  require(0, "the step", DType::u32, {VITRINE_STEP_WORDS});
  require(2, "the number of updates", DType::u32, {1});
  c.require(c.input(1).dtype == DType::f32,
            "the gradients' scale is " + std::string(name_of(c.input(1).dtype)) + ", f32 was expected");
  c.output({VITRINE_STEP_WORDS}, DType::u32);
  c.output({1}, DType::u32, "updates");
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "count_update", "u32"); }

Lowered lower(const LowerContext& c) {
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("count_update", "u32");
  dispatch.constants = {{"local_size", 1}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::input(2), Operand::output(0),
                       Operand::output(1)};
  dispatch.set_params(shader::CountUpdateParams{VITRINE_STEP_WORDS});
  dispatch.groups = spread_groups(c.device(), 1);
  lowered.in_place = {{1, 2}};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_count_update{"count_update", infer, flops, kernels, count_update_cases};

CountedUpdate count_update(Graph& graph, std::string name, ValueId step, ValueId gradient_scale,
                           ValueId updates) {
  const auto out = graph.add(op_count_update, std::move(name), {step, gradient_scale, updates});
  return {out[0], out[1]};
}

}  // namespace vitrine
