#include "runtime/ops/training/soft_distillation.h"

#include <cmath>
#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "shaders/training/soft_distillation.h"

namespace vitrine {
namespace {

constexpr uint32_t student_input = 0, teacher_input = 1, gradient_input = 2;

// Gives the shape of the logits.
Shape infer_inputs(InferContext& c) {
  const Value& student = c.input(student_input);
  const Value& teacher = c.input(teacher_input);
  c.require(student.dtype == DType::f32 && student.shape.rank() == 2,
            "the student's logits are " + std::string(name_of(student.dtype)) + " " +
                student.shape.to_string() + ", f32 [samples, classes] was expected");
  c.require(teacher.dtype == DType::f32 && teacher.shape == student.shape,
            "the teacher's logits are " + std::string(name_of(teacher.dtype)) + " " +
                teacher.shape.to_string() + ", f32 " + student.shape.to_string() + " was expected");
  const double temperature = c.attributes().number("temperature");
  c.require(std::isfinite(temperature) && temperature > 0,
            "the temperature is " + std::to_string(temperature) + ", a number above 0 was expected");
  return student.shape;
}

void infer_losses(InferContext& c) { c.output({infer_inputs(c)[0]}, DType::f32); }

void infer_gradient(InferContext& c) {
  const Shape logits = infer_inputs(c);
  const Value& gradient = c.input(gradient_input);
  c.require(gradient.dtype == DType::f32 && gradient.shape == Shape{logits[0]},
            "the gradients of the losses are " + std::string(name_of(gradient.dtype)) + " " +
                gradient.shape.to_string() + ", f32 [" + std::to_string(logits[0]) + "] was expected");
  c.output(logits, DType::f32);
}

bool is_gradient(const LowerContext& c) { return c.node().inputs.size() > gradient_input; }
std::string variant(const LowerContext& c) { return is_gradient(c) ? "gradient" : "losses"; }

// Two maxima, exponentials (counted as one) and sums, then both again and the series or the difference.
double flops(const LowerContext& c) {
  return (is_gradient(c) ? 20.0 : 30.0) * static_cast<double>(c.input(student_input).shape.elements());
}

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "soft_distillation", variant(c));
}

Lowered lower(const LowerContext& c) {
  const Shape& logits = c.input(student_input).shape;
  const double temperature = c.attributes().number("temperature");
  const double share = c.attributes().flag("sum") ? 1 : 1 / static_cast<double>(logits[1]);
  Dispatch dispatch;
  dispatch.shader = &find_shader("soft_distillation", variant(c));
  dispatch.constants = {{"local_size", row_workgroup_size(c.device(), logits[1])}};
  for (uint32_t i = 0; i < c.node().inputs.size(); ++i) dispatch.operands.push_back(Operand::input(i));
  dispatch.operands.push_back(Operand::output(0));
  dispatch.set_params(shader::SoftDistillationParams{
      to_u32(logits[0]), to_u32(logits[1]), static_cast<float>(1 / temperature),
      static_cast<float>(share * temperature * (is_gradient(c) ? 1 : temperature))});
  dispatch.groups = spread_groups(c.device(), logits[0]);
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  if (is_gradient(c)) lowered.in_place = {{0, student_input}};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

Attributes attributes_of(const SoftDistillationOptions& options) {
  return {{"temperature", options.temperature}, {"sum", int64_t{options.sum}}};
}

void backward(GradContext& c) {
  if (c.wants(teacher_input)) c.refuse("the teacher has no derivative");
  if (!c.wants(student_input)) return;
  c.add(student_input,
        c.graph().add(op_soft_distillation_gradient, c.name("student"),
                      {c.input(student_input), c.input(teacher_input), c.gradient(0)}, c.attributes())[0]);
}

}  // namespace

const OpDef op_soft_distillation{"soft_distillation",     infer_losses, flops, kernels,
                                 soft_distillation_cases, backward};
const OpDef op_soft_distillation_gradient{"soft_distillation_gradient", infer_gradient, flops, kernels,
                                          soft_distillation_gradient_cases};

ValueId soft_distillation(Graph& graph, std::string name, ValueId student, ValueId teacher,
                          const SoftDistillationOptions& options) {
  return graph.add(op_soft_distillation, std::move(name), {student, teacher}, attributes_of(options))[0];
}

ValueId soft_distillation_gradient(Graph& graph, std::string name, ValueId gradient, ValueId student,
                                   ValueId teacher, const SoftDistillationOptions& options) {
  return graph.add(op_soft_distillation_gradient, std::move(name), {student, teacher, gradient},
                   attributes_of(options))[0];
}

}  // namespace vitrine
