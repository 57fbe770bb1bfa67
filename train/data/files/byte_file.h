// Large files that are read in places: a shard of a data set is never read whole, nor mapped (who shortens a
// mapped file ends the process).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/util/system.h"

namespace vitrine {

// What tells that a file or folder is the one that was looked at before.
struct FileStamp {
  uint64_t number = 0, bytes = 0;      // the inode and the size
  uint64_t modified = 0, changed = 0;  // nanoseconds: of the content, and of what the file system keeps of it
  bool operator==(const FileStamp&) const = default;
};
// Error(bad_file) where it can't be looked at.
FileStamp stamp_of(const std::filesystem::path& path);

// May be read by several threads at once.
class ByteFile {
 public:
  // Error(bad_file) if it is no regular file or can't be read.
  explicit ByteFile(std::filesystem::path path);
  // The same file later on. Error(bad_file) if it isn't what it was.
  ByteFile(std::filesystem::path path, const FileStamp& before);

  const std::string& name() const { return name_; }  // for messages
  uint64_t size() const { return stamp_.bytes; }
  const FileStamp& stamp() const { return stamp_; }

  // Just these bytes. Error(bad_file) where the file ends before, and for whatever else goes wrong.
  void read(uint64_t offset, std::span<std::byte> into) const;
  // The same in memory of their own: where they lie in the file is checked before it is taken.
  std::vector<std::byte> read(uint64_t offset, uint64_t bytes) const;

 private:
  [[noreturn]] void fail(const std::string& why) const;

  std::filesystem::path path_;
  std::string name_;
  FileStamp stamp_;
  system::File file_;
};

// Looks at a file from front to back with jumps: what lies close together is read at once.
class FileWindow {
 public:
  explicit FileWindow(const ByteFile& file, size_t usual = 16384) : file_(file), usual_(usual) {}
  // Up to the next call. Fewer bytes where the file ends before.
  std::span<const std::byte> at(uint64_t offset, size_t bytes);

 private:
  const ByteFile& file_;
  size_t usual_;
  uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace vitrine
