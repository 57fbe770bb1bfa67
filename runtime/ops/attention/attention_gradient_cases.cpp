#include <utility>

#include "runtime/check/cases.h"
#include "runtime/check/reference_matmul.h"
#include "runtime/ops/attention/attention_cases.h"
#include "runtime/ops/attention/attention_gradient.h"

namespace vitrine {

using namespace cases;

namespace {

// The gradient of the result times `factor`, a power of two: a training's are that small.
OpCase case_of(const AttentionCase& a, double factor = 1) {
  OpCase c;
  c.label = a.label() + (factor == 1 ? "" : ", tiny");
  c.inputs = a.inputs(DType::f32);
  reference::AttentionGradients gradients = a.add_gradient_inputs(c.inputs, factor);
  c.expected = {std::move(gradients.q), std::move(gradients.k), std::move(gradients.v)};
  if (a.rounded) c.tolerance = reference::usual_tolerance(DType::f16);
  a.add_extras(c.inputs);
  c.build = [a](Graph& graph, std::span<const ValueId> ids) {
    const AttentionGradients made =
        attention_gradient(graph, "g", ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], a.options(ids));
    return std::vector{made.q, made.k, made.v};
  };
  return c;
}

}  // namespace

std::vector<OpCase> attention_gradient_cases() {
  std::vector<OpCase> cases;
  for (const AttentionCase& a : {small_attention, usual_attention, dropped_attention, dropped_bias})
    cases.push_back(case_of(a));
  for (const AttentionCase& a : biased_attentions) cases.push_back(case_of(a));
  // So that no device that has matrix units leaves them untested.
  AttentionCase rounded = usual_attention;
  rounded.rounded = true;
  cases.push_back(case_of(rounded, 0x1p-30));
  const size_t of_all_devices = cases.size();
  for (const AttentionCase& a : trained_attentions) cases.push_back(case_of(a));
  for (const AttentionCase& a : rounded_attentions()) {
    if (!a.by_rows) cases.push_back(case_of(a, 0x1p-30));
  }
  for (size_t i = of_all_devices; i < cases.size(); ++i) cases[i].for_its_path = true;
  return cases;
}

}  // namespace vitrine
