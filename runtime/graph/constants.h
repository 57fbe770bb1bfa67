// Where the data of a graph's constants comes from: a mapped model file, a generator, a test.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/tensor.h"

namespace vitrine {

// A constant may be put together from several stored tensors, concatenated along the first axis (the
// separate query, key and value weights of some checkpoints are one projection here).
struct ConstantPart {
  DType dtype = DType::f32;
  std::span<const std::byte> bytes;
};
using ConstantParts = std::vector<ConstantPart>;

class ConstantSource {
 public:
  virtual ~ConstantSource() = default;
  // The stored data of the named constant, in any float type; it is converted to `dtype` on the device.
  // The bytes stay valid until the next call. Throws Error(bad_file) when there is no such constant or
  // its shape differs.
  virtual ConstantParts find(const std::string& name, const Shape& shape, DType dtype) = 0;
};

}  // namespace vitrine
