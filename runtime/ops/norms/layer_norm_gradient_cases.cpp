#include "runtime/check/cases.h"
#include "runtime/check/reference_gradients.h"
#include "runtime/ops/norms/kept_rows.h"
#include "runtime/ops/norms/layer_norm_gradient.h"

namespace vitrine {

using namespace cases;

namespace {

struct Case {
  Shape shape;
  DType dy = DType::f32, x = DType::f32;
  bool residual = false, for_its_path = true;
  bool parameters = true;  // whether their gradients are asked for
};

OpCase layer_norm_gradient_case(const Case& of) {
  const uint64_t width = of.shape[-1];
  const HostTensor dy = random_tensor(of.shape, of.dy, 1), x = random_tensor(of.shape, of.x, 2, -1, 3),
                   gamma = random_tensor({width}, DType::f32, 3);
  reference::LayerNormGradient expected =
      reference::layer_norm_gradient(dy.values, x.values, gamma.values, 1e-5);
  OpCase c;
  c.label = "rows of " + std::to_string(width) + (of.residual ? ", a residual" : "") +
            (of.parameters ? "" : ", of the rows alone");
  c.for_its_path = of.for_its_path;
  c.inputs = {{dy}, {x}, {gamma}};
  if (of.residual) {
    c.inputs.push_back({random_tensor(of.shape, of.x, 4)});
    for (size_t i = 0; i < expected.dx.size(); ++i) expected.dx[i] += c.inputs[3].tensor.values[i];
  }
  c.expected = {std::move(expected.dx)};
  if (of.parameters) {
    c.expected.push_back(std::move(expected.dgamma));
    c.expected.push_back(std::move(expected.dbeta));
  }
  c.build = [residual = of.residual, parameters = of.parameters](Graph& graph, std::span<const ValueId> ids) {
    const auto [dx, dgamma, dbeta] = layer_norm_gradient(graph, "dx", ids[0], ids[1], ids[2], 1e-5,
                                                         parameters, residual ? ids[3] : ValueId{});
    return parameters ? std::vector{dx, dgamma, dbeta} : std::vector{dx};
  };
  return c;
}

}  // namespace

std::vector<OpCase> layer_norm_gradient_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : dtypes) {
    for (const uint64_t width : {7, 132})
      cases.push_back(layer_norm_gradient_case({{75, width}, dtype, dtype, false, false}));
  }
  // With the gradient that goes past the norm, as in a block.
  for (const uint64_t width : {7, 132}) {
    cases.push_back(layer_norm_gradient_case({.shape = {75, width}, .residual = true}));
  }
  // Of a norm that isn't trained.
  for (const bool residual : {false, true}) {
    for (const uint64_t width : {7, 132}) {
      cases.push_back(
          layer_norm_gradient_case({.shape = {75, width}, .residual = residual, .parameters = false}));
    }
    for (const uint64_t width : kept_widths) {
      cases.push_back(
          layer_norm_gradient_case({.shape = {3, width}, .residual = residual, .parameters = false}));
    }
  }
  for (const bool residual : {false, true}) {
    for (const uint64_t width : kept_widths) {
      cases.push_back(layer_norm_gradient_case({.shape = {3, width}, .residual = residual}));
      if (!residual) cases.push_back(layer_norm_gradient_case({{3, width}, DType::f16, DType::f16}));
    }
  }
  return cases;
}

}  // namespace vitrine
