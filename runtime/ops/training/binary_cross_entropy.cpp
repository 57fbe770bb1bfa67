#include "runtime/ops/training/binary_cross_entropy.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "shaders/training/binary_cross_entropy.h"

namespace vitrine {
namespace {

constexpr uint32_t logits_input = 0, labels_input = 1, others_input = 2, shares_input = 3, gradient_input = 4;

void require_rows(InferContext& c, uint32_t input, const char* what, DType dtype, uint64_t rows) {
  const Value& value = c.input(input);
  c.require(value.dtype == dtype && value.shape == Shape{rows},
            std::string(what) + " are " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                ", " + std::string(name_of(dtype)) + " [" + std::to_string(rows) + "] was expected");
}

// Gives the shape of the logits.
Shape infer_inputs(InferContext& c) {
  const Value& logits = c.input(logits_input);
  c.require(logits.dtype == DType::f32 && logits.shape.rank() == 2,
            "the logits are " + std::string(name_of(logits.dtype)) + " " + logits.shape.to_string() +
                ", f32 [samples, classes] was expected");
  require_rows(c, labels_input, "the labels", DType::u32, logits.shape[0]);
  c.require(c.has_input(others_input) == c.has_input(shares_input),
            "there are other labels or shares alone, both or none were expected");
  if (c.has_input(others_input)) {
    require_rows(c, others_input, "the other labels", DType::u32, logits.shape[0]);
    require_rows(c, shares_input, "the labels' shares", DType::f32, logits.shape[0]);
  }
  const double smoothing = c.attributes().number("label_smoothing");
  c.require(smoothing >= 0 && smoothing <= 1,
            "label_smoothing is " + std::to_string(smoothing) + ", 0 to 1 was expected");
  return logits.shape;
}

void infer_losses(InferContext& c) { c.output({infer_inputs(c)[0]}, DType::f32); }

void infer_gradient(InferContext& c) {
  const Shape logits = infer_inputs(c);
  require_rows(c, gradient_input, "the gradients of the losses", DType::f32, logits[0]);
  c.output(logits, DType::f32);
}

bool is_gradient(const LowerContext& c) { return c.node().inputs.size() > gradient_input; }

// Exponential (counted as one), the logarithm's series or the quotient, the target, and the sum.
double flops(const LowerContext& c) {
  return (is_gradient(c) ? 8.0 : 26.0) * static_cast<double>(c.input(logits_input).shape.elements());
}

std::string variant(const LowerContext& c) { return is_gradient(c) ? "gradient" : "losses"; }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "binary_cross_entropy", variant(c));
}

Lowered lower(const LowerContext& c) {
  const Shape& logits = c.input(logits_input).shape;
  const bool two = c.has_input(others_input);
  Dispatch dispatch;
  dispatch.shader = &find_shader("binary_cross_entropy", variant(c));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), logits[1])},
                        {"two_labels", two},
                        {"binary", c.attributes().flag("binary")}};
  for (uint32_t i = 0; i < c.node().inputs.size(); ++i) {
    dispatch.operands.push_back(c.has_input(i) ? Operand::input(i) : Operand::nothing());
  }
  dispatch.operands.push_back(Operand::output(0));
  dispatch.set_params(shader::BinaryCrossEntropyParams{
      to_u32(logits[0]), to_u32(logits[1]), static_cast<float>(c.attributes().number("label_smoothing")),
      static_cast<float>(c.attributes().number("threshold")),
      c.attributes().flag("sum") ? 1.0f : static_cast<float>(1.0 / static_cast<double>(logits[1]))});
  dispatch.groups = spread_groups(c.device(), logits[0]);
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  if (is_gradient(c)) lowered.in_place = {{0, logits_input}};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

Attributes attributes_of(const BinaryCrossEntropyOptions& options) {
  return {{"label_smoothing", options.label_smoothing},
          {"binary", int64_t{options.target_threshold.has_value()}},
          {"threshold", options.target_threshold.value_or(0)},
          {"sum", int64_t{options.sum}}};
}

void backward(GradContext& c) {
  for (uint32_t i = labels_input; i <= shares_input; ++i) {
    if (c.has_input(i) && c.wants(i)) c.refuse("a target has no derivative");
  }
  if (!c.wants(logits_input)) return;
  const auto input_or_none = [&](uint32_t i) { return c.has_input(i) ? c.input(i) : ValueId{}; };
  c.add(logits_input, c.graph().add(op_binary_cross_entropy_gradient, c.name("logits"),
                                    {c.input(logits_input), c.input(labels_input),
                                     input_or_none(others_input), input_or_none(shares_input), c.gradient(0)},
                                    c.attributes())[0]);
}

}  // namespace

const OpDef op_binary_cross_entropy{"binary_cross_entropy",     infer_losses, flops, kernels,
                                    binary_cross_entropy_cases, backward};
const OpDef op_binary_cross_entropy_gradient{"binary_cross_entropy_gradient", infer_gradient, flops, kernels,
                                             binary_cross_entropy_gradient_cases};

ValueId binary_cross_entropy(Graph& graph, std::string name, ValueId logits, ValueId labels,
                             const BinaryCrossEntropyOptions& options) {
  return graph.add(op_binary_cross_entropy, std::move(name), {logits, labels, options.others, options.shares},
                   attributes_of(options))[0];
}

ValueId binary_cross_entropy_gradient(Graph& graph, std::string name, ValueId gradient, ValueId logits,
                                      ValueId labels, const BinaryCrossEntropyOptions& options) {
  return graph.add(op_binary_cross_entropy_gradient, std::move(name),
                   {logits, labels, options.others, options.shares, gradient}, attributes_of(options))[0];
}

}  // namespace vitrine
