#include "model/files/file_dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

#include "runtime/util/error.h"
#include "runtime/util/half.h"

namespace vitrine {
namespace {

static_assert(std::endian::native == std::endian::little, "the values are copied as they lie in the file");

struct Row {
  std::string_view name;
  uint64_t bits;
};
constexpr std::array<Row, 22> rows{
    {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
     {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
     {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
     {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}}};

}  // namespace

std::string_view name_of(FileDType dtype) { return rows.at(static_cast<size_t>(dtype)).name; }
uint64_t bits_of(FileDType dtype) { return rows.at(static_cast<size_t>(dtype)).bits; }

std::optional<FileDType> file_dtype_named(std::string_view name) {
  const auto* row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.name == name; });
  if (row == rows.end()) return std::nullopt;
  return static_cast<FileDType>(row - rows.begin());
}

bool is_float_weight(FileDType dtype) {
  return dtype == FileDType::f32 || dtype == FileDType::f16 || dtype == FileDType::bf16;
}

void to_floats(FileDType dtype, std::span<const std::byte> bytes, std::span<float> values) {
  if (!is_float_weight(dtype) || bytes.size() != values.size() * bits_of(dtype) / 8) {
    throw Error(ErrorCode::usage, std::to_string(bytes.size()) + " bytes of " + std::string(name_of(dtype)) +
                                      " were to become " + std::to_string(values.size()) + " floats");
  }
  if (values.empty()) return;
  if (dtype == FileDType::f32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return;
  }
  // A file may hold them at odd addresses: they are copied to where a uint16_t may be.
  std::array<uint16_t, 2048> aligned;
  while (!values.empty()) {
    const size_t count = std::min(values.size(), aligned.size());
    const auto part = std::span(aligned).first(count);
    std::memcpy(part.data(), bytes.data(), part.size_bytes());
    if (dtype == FileDType::f16) {
      f16_to_f32(part, values.first(count));
    } else {
      bf16_to_f32(part, values.first(count));
    }
    values = values.subspan(count);
    bytes = bytes.subspan(part.size_bytes());
  }
}

}  // namespace vitrine
