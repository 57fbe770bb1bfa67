// The element types that a safetensors file can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace vitrine {

// In the format's own order: a file's data lies sorted by it, the last first.
enum class FileDType : uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64
};

std::string_view name_of(FileDType dtype);  // as it stands in the file: "BF16"
uint64_t bits_of(FileDType dtype);          // of one element; less than a byte for some
std::optional<FileDType> file_dtype_named(std::string_view name);

// The types whose values can be had as floats: F32, F16 and BF16.
bool is_float_weight(FileDType dtype);

// Converts elements of such a type, however they are aligned; `values` has room for exactly them.
void to_floats(FileDType dtype, std::span<const std::byte> bytes, std::span<float> values);

}  // namespace vitrine
