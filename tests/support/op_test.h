// Runs one operator under every kernel that the device can run it with, and compares each result with a
// float64 reference.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/op.h"
#include "runtime/graph/tensor.h"

namespace vitrine::test {

// A tensor on the host: every value is exactly representable in its dtype.
struct HostTensor {
  Shape shape;
  DType dtype = DType::f32;
  std::vector<double> values;
};

double round_to(DType dtype, double value);
HostTensor random_tensor(Shape shape, DType dtype, uint64_t seed, double low = -1, double high = 1);
HostTensor filled(Shape shape, DType dtype, double value);
std::vector<std::byte> encode(const HostTensor& tensor);
std::vector<double> decode(std::span<const std::byte> bytes, DType dtype);

// ‖out − reference‖ / ‖reference‖
double relative_error(std::span<const double> out, std::span<const double> reference);

struct OpInput {
  HostTensor tensor;
  Role role = Role::input;  // or Role::constant, for weights
};

struct OpCase {
  std::string label;
  std::vector<OpInput> inputs;
  // Builds the nodes and returns the values to compare.
  std::function<std::vector<ValueId>(Graph&, std::span<const ValueId>)> build;
  std::vector<std::vector<double>> expected;  // the float64 reference of each
  // Largest relative error; 0: what every operator must keep for its output's dtype.
  double tolerance = 0;
  bool exact = false;            // every value must be equal
  bool allow_nonfinite = false;  // the reference holds NaN or Inf: they must come out in the same places
};

// Forces each kernel of `op` in turn, in memory that is filled with NaN and has guard bands around every
// tensor; runs twice for equal bits; no validation message. Fails when no kernel could run, or when the
// reference is constant and so would prove nothing.
void check_op(const OpDef& op, const OpCase& op_case);

}  // namespace vitrine::test
