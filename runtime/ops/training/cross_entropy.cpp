#include "runtime/ops/training/cross_entropy.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "shaders/training/cross_entropy.h"

namespace vitrine {
namespace {

constexpr uint32_t logits_input = 0, labels_input = 1, gradient_input = 2;

void require_f32(InferContext& c, uint32_t input, const char* what, const Shape& shape) {
  const Value& value = c.input(input);
  c.require(value.dtype == DType::f32 && value.shape == shape,
            std::string(what) + " are " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                ", f32 " + shape.to_string() + " was expected");
}

// Gives the shape of the logits.
Shape infer_inputs(InferContext& c) {
  const Value& logits = c.input(logits_input);
  const Value& labels = c.input(labels_input);
  c.require(logits.dtype == DType::f32 && logits.shape.rank() == 2,
            "the logits are " + std::string(name_of(logits.dtype)) + " " + logits.shape.to_string() +
                ", f32 [samples, classes] was expected");
  c.require(labels.dtype == DType::u32 && labels.shape == Shape{logits.shape[0]},
            "the labels are " + std::string(name_of(labels.dtype)) + " " + labels.shape.to_string() +
                ", u32 [" + std::to_string(logits.shape[0]) + "] was expected");
  const double smoothing = c.attributes().number("label_smoothing");
  c.require(smoothing >= 0 && smoothing <= 1,
            "label_smoothing is " + std::to_string(smoothing) + ", 0 to 1 was expected");
  return logits.shape;
}

void infer_losses(InferContext& c) { c.output({infer_inputs(c)[0]}, DType::f32); }

void infer_gradient(InferContext& c) {
  const Shape logits = infer_inputs(c);
  require_f32(c, gradient_input, "the gradients of the losses", {logits[0]});
  c.output(logits, DType::f32);
}

// Maximum, exponential (counted as one), sum, and for the gradient quotient and difference.
double flops(const LowerContext& c) {
  return (c.node().inputs.size() > gradient_input ? 5.0 : 3.0) *
         static_cast<double>(c.input(logits_input).shape.elements());
}

std::string variant(const LowerContext& c) {
  return c.node().inputs.size() > gradient_input ? "gradient" : "losses";
}

// What both kernels share; each sets its shader, constants and groups.
Lowered finish(const LowerContext& c, Dispatch dispatch) {
  const Shape& logits = c.input(logits_input).shape;
  for (uint32_t i = 0; i < c.node().inputs.size(); ++i) dispatch.operands.push_back(Operand::input(i));
  dispatch.operands.push_back(Operand::output(0));
  dispatch.set_params(shader::CrossEntropyParams{
      to_u32(logits[0]), to_u32(logits[1]), static_cast<float>(c.attributes().number("label_smoothing"))});
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  // Of the gradient, both read an element for the last time before the same invocation writes it.
  if (c.output(0).shape == logits) lowered.in_place = {{0, logits_input}};
  return lowered;
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "cross_entropy", variant(c));
}

Lowered lower_simple(const LowerContext& c) {
  const Shape& logits = c.input(logits_input).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("cross_entropy", variant(c));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), logits[1])}};
  dispatch.groups = spread_groups(c.device(), logits[0]);
  return finish(c, std::move(dispatch));
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  if (auto reason = refuse(c, "cross_entropy_cpu_lanes", variant(c))) return reason;
  return refuse_row_groups(c, c.input(logits_input).shape[0]);
}

Lowered lower_lanes(const LowerContext& c) {
  const Shape& logits = c.input(logits_input).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("cross_entropy_cpu_lanes", variant(c));
  dispatch.constants = {{"local_size", lanes_workgroup_size(c.device())}, {"classes", to_u32(logits[1])}};
  dispatch.groups = {to_u32(ceil_div(logits[0], dispatch.constant("local_size"))), 1, 1};
  return finish(c, std::move(dispatch));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes}};

Attributes attributes_of(const CrossEntropyOptions& options) {
  return {{"label_smoothing", options.label_smoothing}};
}

void backward(GradContext& c) {
  if (!c.wants(logits_input)) return;
  c.add(logits_input,
        cross_entropy_gradient(c.graph(), c.name("logits"), c.gradient(0), c.input(logits_input),
                               c.input(labels_input), {c.attributes().number("label_smoothing")}));
}

}  // namespace

const OpDef op_cross_entropy{"cross_entropy", infer_losses, flops, kernels, cross_entropy_cases, backward};
const OpDef op_cross_entropy_gradient{"cross_entropy_gradient", infer_gradient, flops, kernels,
                                      cross_entropy_gradient_cases};

ValueId cross_entropy(Graph& graph, std::string name, ValueId logits, ValueId labels,
                      const CrossEntropyOptions& options) {
  return graph.add(op_cross_entropy, std::move(name), {logits, labels}, attributes_of(options))[0];
}

ValueId cross_entropy_gradient(Graph& graph, std::string name, ValueId gradient, ValueId logits,
                               ValueId labels, const CrossEntropyOptions& options) {
  return graph.add(op_cross_entropy_gradient, std::move(name), {logits, labels, gradient},
                   attributes_of(options))[0];
}

}  // namespace vitrine
