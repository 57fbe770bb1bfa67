// How far a student's answers are from a teacher's.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_soft_distillation;
extern const OpDef op_soft_distillation_gradient;
std::vector<reference::OpCase> soft_distillation_cases();
std::vector<reference::OpCase> soft_distillation_gradient_cases();

struct SoftDistillationOptions {
  double temperature = 1;  // what logits are divided by
  bool sum = false;        // over the classes; else their mean
};

// The student's and the teacher's logits, each [B, C] f32. Gives each row's loss as [B] f32: the
// temperature's square times the mean over the classes of q (log q - log p), p and q being the softmax of the
// student's and of the teacher's logits over the temperature. With `sum` that is temperature^2 KL(q | p). The
// teacher has no derivative.
ValueId soft_distillation(Graph& graph, std::string name, ValueId student, ValueId teacher,
                          const SoftDistillationOptions& options = {});

// The gradient of the student's logits, [B, C], where `gradient` [B] f32 is that of the losses.
ValueId soft_distillation_gradient(Graph& graph, std::string name, ValueId gradient, ValueId student,
                                   ValueId teacher, const SoftDistillationOptions& options = {});

}  // namespace vitrine
