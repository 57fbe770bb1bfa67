#include "runtime/graph/tensor.h"

#include <algorithm>

#include "runtime/util/error.h"
#include "runtime/util/overflow.h"

namespace vitrine {

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::u32:
      return "u32";
  }
  return "?";
}

uint64_t size_of(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? 2 : 4; }

Shape::Shape(std::span<const uint64_t> dims) : rank_(dims.size()) {
  if (dims.size() > max_rank) {
    throw Error(ErrorCode::usage, "a tensor of rank " + std::to_string(dims.size()) +
                                      " was asked for, at most " + std::to_string(max_rank) + " is possible");
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
  uint64_t product = 1;
  for (const uint64_t dim : dims) {
    if (dim == 0) throw Error(ErrorCode::usage, "a tensor's shape " + to_string() + " holds a zero");
    if (!multiply(product, dim) || product > (uint64_t{1} << 48)) {
      throw Error(ErrorCode::usage, "a tensor of shape " + to_string() + " is larger than memory can be");
    }
  }
}

uint64_t Shape::operator[](int index) const {
  const int at = index < 0 ? index + static_cast<int>(rank_) : index;
  if (at < 0 || at >= static_cast<int>(rank_)) {
    throw Error(ErrorCode::usage, "dimension " + std::to_string(index) + " asked of shape " + to_string());
  }
  return dims_[static_cast<size_t>(at)];
}

uint64_t Shape::elements() const {
  uint64_t product = 1;
  for (const uint64_t dim : dims()) product *= dim;
  return product;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (size_t i = 0; i < rank_; ++i) text += (i ? ", " : "") + std::to_string(dims_[i]);
  return text + "]";
}

bool Shape::operator==(const Shape& other) const {
  return std::equal(dims().begin(), dims().end(), other.dims().begin(), other.dims().end());
}

}  // namespace vitrine
