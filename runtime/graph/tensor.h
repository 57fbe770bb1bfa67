// What a tensor is made of: element type and shape. Dense, row-major, no strides.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace vitrine {

enum class DType : uint8_t { f32, f16, bf16, u32 };

std::string_view name_of(DType dtype);
uint64_t size_of(DType dtype);

// Up to five dimensions, the slowest first. A shape of rank 0 is a scalar.
class Shape {
 public:
  static constexpr size_t max_rank = 5;

  Shape() = default;
  Shape(std::initializer_list<uint64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const uint64_t> dims);

  size_t rank() const { return rank_; }
  // Negative indices count from the end: shape[-1] is the fastest dimension.
  uint64_t operator[](int index) const;
  std::span<const uint64_t> dims() const { return {dims_.data(), rank_}; }
  uint64_t elements() const;
  // The product of all dimensions but the last: how many rows a [.., width] tensor has.
  uint64_t rows() const { return elements() / (*this)[-1]; }
  std::string to_string() const;  // "[2, 197, 768]"

  bool operator==(const Shape& other) const;

 private:
  std::array<uint64_t, max_rank> dims_{};
  size_t rank_ = 0;
};

}  // namespace vitrine
