// Writes .safetensors files, byte for byte as the format's own library would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/files/file_dtype.h"

namespace vitrine {

struct TensorToWrite {
  std::string name;
  FileDType dtype = FileDType::f32;
  std::vector<uint64_t> shape;
  std::span<const std::byte> data;
};

// Sorts by dtype (the widest first) and name, so that every tensor is aligned to its element, and
// replaces `path` whole or not at all. Error(usage) for a tensor whose data does not fit its shape, a
// name that repeats or that is no UTF-8; Error(failed) for a file that cannot be written.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace vitrine
