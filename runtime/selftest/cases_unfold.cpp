// The cases of what the derivatives of the operators that move data are made of.
#include "runtime/ops/moves/pad.h"
#include "runtime/ops/moves/reshape.h"
#include "runtime/ops/moves/unfold.h"
#include "runtime/ops/products/weight_gradient.h"
#include "runtime/ops/tokens/assemble_tokens_gradient.h"
#include "runtime/ops/tokens/pool.h"
#include "runtime/selftest/cases.h"
#include "runtime/selftest/reference_gradients.h"

namespace vitrine::selftest {
namespace {

using Build = std::function<std::vector<ValueId>(Graph&, std::span<const ValueId>)>;

OpCase case_of(std::string label, std::vector<OpInput> inputs, std::vector<std::vector<double>> expected,
               Build build) {
  return {.label = std::move(label),
          .inputs = std::move(inputs),
          .build = std::move(build),
          .expected = std::move(expected)};
}

}  // namespace

std::vector<OpCase> pad_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const HostTensor x = random_tensor({3, 5, 7}, dtype, 1);
    cases.push_back(case_of("5 of 11 tokens", {{x}}, {reference::pad(x.values, x.shape, 1, 4, 11)},
                            [](Graph& graph, std::span<const ValueId> ids) {
                              return std::vector{pad(graph, "y", ids[0], 1, 4, 11)};
                            }));
    cases.back().exact = true;
  }
  return cases;
}

std::vector<OpCase> reshape_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : {DType::f32, DType::f16}) {
    const HostTensor x = random_tensor({7, 3, 5, 4}, dtype, 1);
    cases.push_back(case_of("a patch embedding's weight", {{x}}, {x.values},
                            [](Graph& graph, std::span<const ValueId> ids) {
                              return std::vector{reshape(graph, "y", ids[0], {7, 60})};
                            }));
    cases.back().exact = true;
  }
  return cases;
}

std::vector<OpCase> pool_gradient_cases() {
  const HostTensor dy = random_tensor({5, 7}, DType::f32, 1);
  return {case_of("the mean of 3", {{dy}}, {reference::pool_gradient(dy.values, 7, 11, 4, 3)},
                  [](Graph& graph, std::span<const ValueId> ids) {
                    return std::vector{pool_gradient(graph, "y", ids[0], 11, 4, 3)};
                  })};
}

std::vector<OpCase> unfold_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t width : {4, 5}) {
    const HostTensor image = random_tensor({2, 3, 10, 14}, DType::f32, 1);
    cases.push_back(case_of("patches " + std::to_string(width) + " wide", {{image}},
                            {reference::unfold(image.values, image.shape, 3, width)},
                            [width](Graph& graph, std::span<const ValueId> ids) {
                              return std::vector{unfold(graph, "y", ids[0], {3, width})};
                            }));
    cases.back().exact = true;
  }
  return cases;
}

std::vector<OpCase> fold_cases() {
  const HostTensor rows = random_tensor({2, 9, 36}, DType::f32, 1);
  OpCase c = case_of("patches of 3 x 4", {{rows}}, {reference::fold(rows.values, {2, 3, 10, 14}, 3, 4)},
                     [](Graph& graph, std::span<const ValueId> ids) {
                       return std::vector{fold(graph, "y", ids[0], 10, 14, {3, 4})};
                     });
  c.exact = true;
  return {c};
}

std::vector<OpCase> weight_gradient_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t n : {5, 8}) {
    constexpr uint64_t rows = 1301, groups = 3, k = 4;
    const HostTensor dy = random_tensor({rows, groups * n}, DType::f32, 1),
                     x = random_tensor({rows, groups * k}, DType::f32, 2);
    cases.push_back(case_of("3 groups of " + std::to_string(n) + " x 4", {{dy}, {x}},
                            {reference::weight_gradient(dy.values, x.values, groups, n, k, rows),
                             reference::sum_rows(dy.values, groups * n)},
                            [](Graph& graph, std::span<const ValueId> ids) {
                              const WeightGradient found = weight_gradient(graph, "y", ids[0], ids[1],
                                                                           {.groups = groups, .bias = true});
                              return std::vector{found.weight, found.bias};
                            }));
  }
  return cases;
}

std::vector<OpCase> assemble_tokens_gradient_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t dims : {7, 12}) {
    const HostTensor dy = random_tensor({19, 11, dims}, DType::f32, 1);
    const auto expected = reference::assemble_tokens_gradient(dy.values, dy.shape, {true, true, 2, 9});
    cases.push_back(case_of("all kinds of " + std::to_string(dims), {{dy}},
                            {expected.patches, expected.class_token, expected.distillation_token,
                             expected.registers, expected.positions},
                            [](Graph& graph, std::span<const ValueId> ids) {
                              const TokenGradients found = assemble_tokens_gradient(
                                  graph, "y", ids[0], {true, true, 2, 9}, {true, true, true, true, true});
                              return std::vector{found.patches, found.class_token, found.distillation_token,
                                                 found.registers, found.positions};
                            }));
  }
  return cases;
}

}  // namespace vitrine::selftest
