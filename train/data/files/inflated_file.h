// A file that may be compressed by gzip: what its bytes say, whatever its name is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "runtime/util/mapped_file.h"

namespace vitrine {

// The header is read first. It tells how many bytes there are, and only then the rest is: no file can make
// this take more memory than its own header asks for, nor more than its compressed bytes can become.
class InflatedFile {
 public:
  // Error(bad_file) if the file can't be read or has fewer than `header_bytes` bytes.
  InflatedFile(const std::filesystem::path& path, size_t header_bytes);
  ~InflatedFile();
  InflatedFile(InflatedFile&&) noexcept;
  InflatedFile& operator=(InflatedFile&&) noexcept;

  const std::string& name() const { return name_; }
  std::span<const std::byte> header() const;

  // Error(bad_file) unless there can be just so many bytes after the header: a plain file has its size, and
  // gzip's format cannot make more than about a thousand bytes of one.
  void expect(uint64_t bytes) const;
  // All that follows the header. Error(bad_file) unless it is so many bytes, and whole. The bytes stay valid
  // while this lives, also after a move.
  std::span<const std::byte> read(uint64_t bytes);

 private:
  class Stream;

  size_t fill(std::span<std::byte> part);
  [[noreturn]] void fail(const std::string& found, uint64_t expected) const;

  MappedFile file_;
  std::string name_;
  std::unique_ptr<std::byte[]> header_, content_;
  size_t header_bytes_;
  std::unique_ptr<Stream> stream_;  // none for a plain file
};

}  // namespace vitrine
