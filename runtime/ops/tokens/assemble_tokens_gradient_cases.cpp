#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/tokens/assemble_tokens_gradient.h"

namespace vitrine {

using namespace cases;

namespace {

OpCase gradient_case(std::string label, uint64_t dims, const TokenLayout& layout,
                     const TokenGradientsWanted& wanted) {
  const HostTensor dy = random_tensor({19, 11, dims}, DType::f32, 1);
  const auto expected = reference::assemble_tokens_gradient(
      dy.values, dy.shape,
      {layout.class_token, layout.distillation_token, layout.registers, layout.positions});
  OpCase c;
  c.label = std::move(label) + " of " + std::to_string(dims);
  c.inputs = {{dy}};
  for (const auto& [is_wanted, values] : {std::pair{wanted.patches, &expected.patches},
                                          {wanted.class_token, &expected.class_token},
                                          {wanted.distillation_token, &expected.distillation_token},
                                          {wanted.registers, &expected.registers},
                                          {wanted.positions, &expected.positions}}) {
    if (is_wanted) c.expected.push_back(*values);
  }
  c.build = [layout, wanted](Graph& graph, std::span<const ValueId> ids) {
    const TokenGradients found = assemble_tokens_gradient(graph, "y", ids[0], layout, wanted);
    std::vector<ValueId> results{found.patches, found.class_token, found.distillation_token, found.registers,
                                 found.positions};
    std::erase(results, ValueId{});
    return results;
  };
  return c;
}

}  // namespace

std::vector<OpCase> assemble_tokens_gradient_cases() {
  std::vector<OpCase> cases;
  for (const uint64_t dims : {7, 12}) {
    cases.push_back(gradient_case("all kinds", dims, {true, true, 2, 9}, {true, true, true, true, true}));
    // As models have them: a class token, with fixed positions and with learned ones, with and without a
    // second token; mean pooling goes without.
    for (OpCase& c : std::vector{
             gradient_case("a class token", dims, {true, false, 0, 0},
                           {.patches = true, .class_token = true}),
             gradient_case("a class token, positions", dims, {true, false, 0, 11},
                           {.patches = true, .class_token = true, .positions = true}),
             gradient_case("a class token, registers, positions", dims, {true, false, 2, 9},
                           {true, true, false, true, true}),
             gradient_case("two tokens, positions", dims, {true, true, 0, 11},
                           {true, true, true, false, true}),
             gradient_case("positions", dims, {false, false, 0, 11}, {.patches = true, .positions = true})}) {
      c.for_its_path = true;
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

}  // namespace vitrine
