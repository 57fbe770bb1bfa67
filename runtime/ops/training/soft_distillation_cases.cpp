#include "runtime/check/cases.h"
#include "runtime/check/reference_recipes.h"
#include "runtime/ops/training/soft_distillation.h"

namespace vitrine {

using namespace cases;

namespace {

constexpr uint64_t rows = 37, classes = 11;

HostTensor logits(uint64_t seed) { return random_tensor({rows, classes}, DType::f32, seed, -3, 3); }

std::vector<OpCase> cases_of(bool gradient) {
  std::vector<OpCase> cases;
  for (const bool sum : {false, true}) {
    const SoftDistillationOptions options{.temperature = sum ? 3.0 : 1.0, .sum = sum};
    const reference::Softness softness{classes, options.temperature, sum};
    const HostTensor given = random_tensor({rows}, DType::f32, 3);
    OpCase c{.label = "temperature " + std::to_string(options.temperature),
             .inputs = {{logits(1)}, {logits(2)}, {given}}};
    c.expected = {gradient ? reference::soft_distillation_gradient(given.values, logits(1).values,
                                                                   logits(2).values, softness)
                           : reference::soft_distillation(logits(1).values, logits(2).values, softness)};
    c.build = [options, gradient](Graph& graph, std::span<const ValueId> ids) {
      return std::vector{gradient ? soft_distillation_gradient(graph, "y", ids[2], ids[0], ids[1], options)
                                  : soft_distillation(graph, "y", ids[0], ids[1], options)};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace

std::vector<OpCase> soft_distillation_cases() { return cases_of(false); }
std::vector<OpCase> soft_distillation_gradient_cases() { return cases_of(true); }

}  // namespace vitrine
