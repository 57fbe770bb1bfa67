// A checkpoint's tensors, wherever they lie: one .safetensors file, or several with an index.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "model/files/safetensors.h"

namespace vitrine {

// A tensor and the file that it lies in; valid as long as the TensorFiles that handed it out.
struct StoredTensor {
  const SafetensorsFile* file = nullptr;
  const TensorInfo* info = nullptr;

  std::span<const std::byte> bytes() const { return file->bytes(*info); }
  std::vector<float> floats() const { return file->floats(*info); }
};

class TensorFiles {
 public:
  // `path` is a .safetensors file, an index (.json), or a folder that holds model.safetensors or
  // model.safetensors.index.json. An index may name files of its own folder only, and each tensor
  // must be in the file that the index says, else Error(bad_file).
  explicit TensorFiles(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }         // the file or index that was opened
  std::span<const StoredTensor> tensors() const { return tensors_; }  // sorted by name
  const StoredTensor* find(std::string_view name) const;              // null if there is none

 private:
  void open_index();

  std::filesystem::path path_;
  std::vector<std::unique_ptr<const SafetensorsFile>> files_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace vitrine
