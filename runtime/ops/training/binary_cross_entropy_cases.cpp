#include "runtime/check/cases.h"
#include "runtime/check/reference_recipes.h"
#include "runtime/ops/training/binary_cross_entropy.h"

namespace vitrine {

using namespace cases;

namespace {

constexpr uint64_t rows = 37, classes = 11;

HostTensor logits() { return random_tensor({rows, classes}, DType::f32, 1, -3, 3); }
HostTensor labels(uint64_t seed) {
  return random_tensor({rows}, DType::u32, seed, 0, static_cast<double>(classes));
}

// One label a row, two, and two whose targets become 0 or 1.
std::vector<OpCase> cases_of(bool gradient) {
  std::vector<OpCase> cases;
  const HostTensor others = labels(3), given = random_tensor({rows}, DType::f32, 5);
  const HostTensor shares = random_tensor({rows}, DType::f32, 4, 0, 1);
  for (const int kind : {0, 1, 2}) {
    reference::Targets targets{.labels = labels(2).values, .smoothing = 0.1, .sum = kind == 2};
    if (kind > 0) targets.others = others.values, targets.shares = shares.values;
    if (kind == 2) targets.threshold = 0.2;
    OpCase c{.label = std::to_string(kind == 0 ? 1 : 2) + " labels" + (kind == 2 ? ", binary" : "")};
    c.inputs = {{logits()}, {labels(2)}, {others}, {shares}, {given}};
    c.expected = {gradient ? reference::binary_cross_entropy_gradient(given.values, logits().values, targets)
                           : reference::binary_cross_entropy(logits().values, targets)};
    c.build = [kind, gradient](Graph& graph, std::span<const ValueId> ids) {
      BinaryCrossEntropyOptions options{.label_smoothing = 0.1, .sum = kind == 2};
      if (kind > 0) options.others = ids[2], options.shares = ids[3];
      if (kind == 2) options.target_threshold = 0.2;
      return std::vector{gradient ? binary_cross_entropy_gradient(graph, "y", ids[4], ids[0], ids[1], options)
                                  : binary_cross_entropy(graph, "y", ids[0], ids[1], options)};
    };
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace

std::vector<OpCase> binary_cross_entropy_cases() { return cases_of(false); }
std::vector<OpCase> binary_cross_entropy_gradient_cases() { return cases_of(true); }

}  // namespace vitrine
