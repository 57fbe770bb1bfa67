// A file as read-only memory: the system reads the parts that are touched, when they are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace vitrine {

// Error(bad_file) if there is no such file, it is a folder or device, or it cannot be read. An empty
// file is empty bytes. The bytes stay valid while this lives, also after a move and after the file
// was renamed or deleted; whoever shortens the file in place ends the process.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Gives the memory of bytes that were read back to the system; touching them again reads again.
  void forget(std::span<const std::byte> part) const;

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

}  // namespace vitrine
