// One .safetensors file, read strictly: a u64 N, N bytes of JSON that describe every tensor, the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/files/file_dtype.h"
#include "runtime/util/mapped_file.h"

namespace vitrine {

struct TensorInfo {
  std::string name;
  FileDType dtype = FileDType::f32;
  std::vector<uint64_t> shape;  // [] is a scalar; zeros are possible
  uint64_t begin = 0;           // bytes into the file's data
  uint64_t end = 0;

  uint64_t elements() const { return (end - begin) * 8 / bits_of(dtype); }
};

// Maps the file and proves every rule of the format before it hands out anything: header within the
// file and its limit, UTF-8, each tensor's size equal to its shape's, the data covered without hole or
// overlap. A file that breaks one is an Error(bad_file), found before memory is taken for it.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  std::span<const TensorInfo> tensors() const { return tensors_; }  // in the order of the data
  const TensorInfo* find(std::string_view name) const;              // null if there is none

  // The tensor's bytes in the mapped file. They may lie at any address: copy, do not cast.
  std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  // The tensor's values; Error(bad_file) if it is not F32, F16 or BF16.
  std::vector<float> floats(const TensorInfo& tensor) const;
  // Takes what was read of the tensor out of memory again.
  void forget(const TensorInfo& tensor) const { file_.forget(bytes(tensor)); }

 private:
  MappedFile file_;
  uint64_t data_offset_ = 0;
  std::vector<TensorInfo> tensors_;
  std::vector<size_t> by_name_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace vitrine
