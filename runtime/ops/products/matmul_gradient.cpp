// The derivative of matmul: two products with transposed operands, behind what its epilogue asks for.
#include "runtime/graph/autodiff.h"
#include "runtime/ops/elementwise/activation_gradient.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/elementwise/magnitude.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/moves/sum_rows.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/products/weight_gradient.h"

namespace vitrine {

// y = residual + scale * act(z) with z = x W^T + bias. Of what happens in between nothing was kept: where it
// is needed, the product is computed once more.
void differentiate_matmul(GradContext& c) {
  namespace at = matmul_input;
  Graph& graph = c.graph();
  const auto activation = static_cast<Activation>(c.attributes().integer("activation"));
  const bool scaled = c.has_input(at::scale), rounded = c.attributes().flag("rounded");
  const ValueId dy = convert(graph, c.name("wide"), c.gradient(0), DType::f32);
  c.add(at::residual, dy);

  ValueId z, dz = dy;
  const bool below = c.wants(at::x) || c.wants(at::weight) || c.wants(at::bias);
  if (c.wants(at::scale) || (below && activation != Activation::none)) {
    z = matmul(graph, c.name("again"), c.input(at::x), c.input(at::weight),
               {.bias = c.has_input(at::bias) ? c.input(at::bias) : ValueId{},
                .out = DType::f32,
                .rounded = rounded});
  }
  if (c.wants(at::scale)) {
    const ValueId activated = activate(graph, c.name("activated"), z, activation);
    c.add(at::scale, sum_products(graph, c.name("scale"), dy, activated));
  }
  if (!below) return;
  if (scaled) dz = multiply(graph, c.name("scaled"), dz, c.input(at::scale));
  if (activation != Activation::none) dz = activation_gradient(graph, c.name("z"), dz, z, activation);
  // Both products are given the gradient on their left side.
  const bool multiplies = c.wants(at::weight) || c.wants(at::x);
  const ValueId largest = rounded && multiplies ? magnitude(graph, c.name("magnitude"), dz) : ValueId{};
  if (c.wants(at::weight) || c.wants(at::bias)) {
    const ValueId x = c.wants(at::weight) ? c.input(at::x) : ValueId{};
    const WeightGradient found = linear_gradients(
        graph, c.name("weight"), dz, x,
        {.bias = c.wants(at::bias), .rounded = rounded, .magnitude = x ? largest : ValueId{}});
    if (found.weight) c.add(at::weight, found.weight);
    if (found.bias) c.add(at::bias, found.bias);
  }
  if (c.wants(at::x)) {
    const ValueId narrow = convert(graph, c.name("narrow"), dz, c.input_value(at::x).dtype);
    const ValueId turned = transpose(graph, c.name("x.weight"), c.input(at::weight));
    c.add(at::x, matmul(graph, c.name("x"), narrow, turned, {.rounded = rounded, .magnitude = largest}));
  }
}

}  // namespace vitrine
