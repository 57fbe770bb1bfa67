#include "runtime/ops/elementwise/dropout.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/elementwise/random_mask.h"
#include "runtime/ops/lowering.h"
#include "shaders/elementwise/dropout.h"
#include "shaders/lib/step_state.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(is_computable(x.dtype), "x is " + std::string(name_of(x.dtype)) + ", expected f32 or f16");
  require_step(c, 1);
  require_drop_rate(c);
  const int64_t group = c.attributes().integer("group");
  c.require(group > 0 && x.shape.elements() % static_cast<uint64_t>(group) == 0,
            "x is " + x.shape.to_string() + ", which is not made of groups of " + std::to_string(group));
  c.output(x.shape, x.dtype);
}

double flops(const LowerContext& c) { return static_cast<double>(c.output(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "dropout", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const uint64_t count = c.output(0).shape.elements();
  const double rate = c.attributes().number("rate");
  Dispatch dispatch;
  dispatch.shader = &find_shader("dropout", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"group", to_u32(static_cast<uint64_t>(c.attributes().integer("group")))}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(
      shader::DropoutParams{.count = to_u32(count),
                            .stream = to_u32(static_cast<uint64_t>(c.attributes().integer("stream"))),
                            .threshold = drop_threshold(rate),
                            .factor = kept_factor(rate)});
  dispatch.groups = spread_groups(c.device(), ceil_div(ceil_div(count, 4), dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  lowered.in_place = {{0, 0}};
  return lowered;
}

std::optional<std::string> refuses_wide(const LowerContext& c) {
  return refuse(c, "dropout_wide", name_of(c.input(0).dtype));
}

Lowered lower_as_wide(const LowerContext& c) {
  return lower_wide(c, lower(c), "dropout_wide", name_of(c.input(0).dtype));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"wide", Target::any, refuses_wide, prefer_on_gpu, lower_as_wide}};

// The mask is drawn again: the same numbers come out.
void backward(GradContext& c) {
  c.add(0, c.graph().add(op_dropout, c.name("x"), {c.gradient(0), c.input(1)}, c.attributes())[0]);
}

}  // namespace

const OpDef op_dropout{"dropout", infer, flops, kernels, dropout_cases, backward};

ValueId dropout(Graph& graph, std::string name, ValueId x, ValueId step, const DropoutOptions& options) {
  if (options.rate == 0) return x;
  return graph.add(op_dropout, std::move(name), {x, step},
                   {{"rate", options.rate},
                    {"stream", int64_t{options.stream}},
                    {"group", static_cast<int64_t>(options.group)}})[0];
}

void require_step(const InferContext& c, size_t input) {
  c.require(c.has_input(input), "something is to be dropped, and there is no step to draw from");
  const Value& step = c.input(input);
  c.require(step.dtype == DType::u32 && step.shape == Shape{VITRINE_STEP_WORDS},
            "the step is " + std::string(name_of(step.dtype)) + " " + step.shape.to_string() + ", u32 [" +
                std::to_string(VITRINE_STEP_WORDS) + "] was expected");
}

void require_drop_rate(const InferContext& c) {
  const double rate = c.attributes().number("rate");
  c.require(rate >= 0 && rate <= largest_drop_rate,
            "a rate of " + std::to_string(rate) + " was asked for, expected 0 to less than 1");
}

}  // namespace vitrine
