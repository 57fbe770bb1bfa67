#include "tests/support/constants.h"

namespace vitrine::test {

HostTensor RandomConstants::tensor(const std::string& name, const Shape& shape, DType dtype) const {
  uint64_t seed = seed_;
  for (const char letter : name) seed = seed * 1099511628211ull + static_cast<unsigned char>(letter);
  return random_tensor(shape, dtype, seed, -0.5, 0.5);
}

ConstantParts RandomConstants::find(const std::string& name, const Shape& shape, DType dtype) {
  std::vector<std::byte>& bytes = bytes_[name];
  bytes = encode(tensor(name, shape, dtype));
  return {{dtype, bytes}};
}

}  // namespace vitrine::test
