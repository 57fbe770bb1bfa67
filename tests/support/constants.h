// Constants for tests that need some, but no particular, weights.
#pragma once

#include <map>
#include <vector>

#include "runtime/graph/constants.h"
#include "tests/support/op_test.h"

namespace vitrine::test {

// Random values between -0.5 and 0.5 that depend on the seed and the constant's name alone.
class RandomConstants final : public ConstantSource {
 public:
  explicit RandomConstants(uint64_t seed) : seed_(seed) {}
  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override;
  // The values that find() gives, for references.
  HostTensor tensor(const std::string& name, const Shape& shape, DType dtype) const;

 private:
  uint64_t seed_;
  std::map<std::string, std::vector<std::byte>> bytes_;
};

}  // namespace vitrine::test
