// Small cases of every operator, at sizes that fit no tile: what a kernel has to get right before a device
// may use it. The tests under tests/ops look at far more.
#pragma once

#include <vector>

#include "runtime/graph/op.h"
#include "runtime/selftest/op_case.h"

namespace vitrine::selftest {

// Empty for operators that have none here.
std::vector<OpCase> cases_of(const OpDef& op);

// cases_products.cpp
std::vector<OpCase> matmul_cases();
std::vector<OpCase> grouped_matmul_cases();
std::vector<OpCase> patch_embed_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> attention_gradient_cases();
std::vector<OpCase> attention_rows_cases();
std::vector<OpCase> attention_rollout_cases();
std::vector<OpCase> plain_attention_cases();

// cases_gradients.cpp
std::vector<OpCase> activation_gradient_cases();
std::vector<OpCase> sum_rows_cases();
std::vector<OpCase> transpose_cases();
std::vector<OpCase> softmax_gradient_cases();
std::vector<OpCase> layer_norm_gradient_cases();
std::vector<OpCase> gated_product_gradient_cases();

// cases_training.cpp
std::vector<OpCase> cross_entropy_cases();
std::vector<OpCase> cross_entropy_gradient_cases();
std::vector<OpCase> sgd_step_cases();
std::vector<OpCase> adam_step_cases();
std::vector<OpCase> clip_scale_cases();

// cases_unfold.cpp
std::vector<OpCase> pad_cases();
std::vector<OpCase> reshape_cases();
std::vector<OpCase> pool_gradient_cases();
std::vector<OpCase> unfold_cases();
std::vector<OpCase> fold_cases();
std::vector<OpCase> weight_gradient_cases();
std::vector<OpCase> assemble_tokens_gradient_cases();

// cases_heat.cpp
std::vector<OpCase> heat_cases();
std::vector<OpCase> attention_heat_cases();
std::vector<OpCase> centered_rows_cases();
std::vector<OpCase> principal_colors_cases();

}  // namespace vitrine::selftest
