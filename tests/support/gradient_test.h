// Checks an operator's backward: the float64 reference against differences of the float64 forward, and what
// add_gradients() makes of a graph against that reference.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/op_test.h"
#include "tests/support/reference.h"

namespace vitrine::test {

using reference::Values;

struct GradientCase {
  std::string label;
  // Constants and whole numbers are not differentiated.
  std::vector<OpInput> inputs;
  // Builds the nodes and returns the values whose gradients are given.
  std::function<std::vector<ValueId>(Graph&, std::span<const ValueId>)> build;
  // Float64: the results for these inputs, and the gradients of the inputs for these gradients of the
  // results. What backward leaves empty is not asked for: so a case can ask for some inputs' gradients only.
  std::function<Results(std::span<const Values> inputs)> forward;
  std::function<Results(std::span<const Values> inputs, std::span<const Values> gradients)> backward;
  // As OpCase::tolerance.
  double tolerance = 0;
};

// The reference's backward agrees with central differences of its forward to 1e-6: in each input along random
// directions, and for some single elements. Then the graph's gradients agree with the reference as they are
// planned, and under every kernel of the operators in it but products and attention, as check_op() runs them:
// those have tests of their own for that. The gradients of the results are random inputs.
void check_gradients(const GradientCase& gradient_case);

}  // namespace vitrine::test
