// NumPy's .npy files, format 1.0 and 2.0: C order, little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/util/mapped_file.h"

namespace vitrine {

enum class NpyDType : uint8_t { u8, f16, f32, f64, i64 };

std::string_view name_of(NpyDType dtype);  // NumPy's name: "float32"
uint64_t size_of(NpyDType dtype);

struct NpyHeader {
  NpyDType dtype = NpyDType::f32;
  std::vector<uint64_t> shape;  // any rank up to 32, zeros possible
  uint64_t elements = 1;
  uint64_t data_offset = 0;  // of the first element in the file
};

// Reads the header at the start of a file of `bytes` and proves that exactly the announced data
// follows. Error(bad_file) with `name`, what was found and what was expected otherwise.
NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& name);

// "(2, 3)", as NumPy writes shapes.
std::string npy_shape(std::span<const uint64_t> shape);

// A mapped file: nothing but the header is read before it is asked for.
class NpyFile {
 public:
  explicit NpyFile(const std::filesystem::path& path);

  const NpyHeader& header() const { return header_; }
  const std::filesystem::path& path() const { return file_.path(); }
  std::span<const std::byte> data() const;

  // All values. The file must hold just this type, else Error(bad_file): uint8_t, float, double,
  // int64_t, or uint16_t for the bits of float16.
  template <typename T>
  std::vector<T> values() const;

 private:
  MappedFile file_;
  NpyHeader header_;
};

// Writes the file whole or not at all; the shape must fit the number of values.
void write_npy(const std::filesystem::path& path, std::span<const uint64_t> shape,
               std::span<const float> values);
void write_npy(const std::filesystem::path& path, std::span<const uint64_t> shape,
               std::span<const uint8_t> values);

}  // namespace vitrine
