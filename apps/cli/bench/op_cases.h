// The operators that vitrine bench --op can time: their graphs, and what must come out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/graph/constants.h"
#include "runtime/graph/graph.h"

namespace vitrine::cli {

// Random numbers between -range and range, a function of the constant's name and the element's number, so
// that a reference can ask for any of them. Each has a full mantissa: round numbers cost some hardware less
// power.
class RandomValues final : public ConstantSource {
 public:
  RandomValues(uint64_t seed, double range) : seed_(seed), range_(range) {}
  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override;
  // What the device is given, rounded to the element type.
  double value(const std::string& name, uint64_t element, DType dtype) const;

 private:
  float plain_value(uint64_t stream, uint64_t element) const;
  uint64_t stream_of(const std::string& name) const;
  uint64_t seed_;
  double range_;
  std::vector<std::byte> bytes_;
};

// One operator at one size.
class OpCase {
 public:
  virtual ~OpCase() = default;
  // Appends the operator, on constants that all repetitions share; the result is [.., rows, width].
  virtual ValueId build(Graph& graph, const std::string& name, DType dtype) const = 0;
  virtual uint64_t rows() const = 0;
  // Of the largest dimension before the rows; a reference looks at the first and the last of them.
  virtual uint64_t batch() const { return 1; }
  virtual double range() const { return 1; }
  // One row of the result.
  virtual std::vector<double> reference(const RandomValues& values, DType dtype, uint64_t image,
                                        uint64_t row) const = 0;
};

// The names that make_op_case knows, and what their sizes mean, for messages.
const std::vector<std::string>& op_case_names();
// `shape` is sizes with an x between them: "50432x3072x768". Throws Error(usage).
std::unique_ptr<OpCase> make_op_case(const std::string& name, const std::string& shape);

}  // namespace vitrine::cli
