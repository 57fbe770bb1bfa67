// Files that appear whole or not at all: whoever reads the old one, or has it mapped, keeps it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "runtime/util/system.h"
#include "runtime/util/unfinished.h"

namespace vitrine {

// Writes a temporary file beside `path`; commit() brings it to the disk and renames it over `path`.
// Destroyed without commit(), it leaves what was there before. A symbolic link at `path` stays and
// its target is replaced. A signal that ends the process can take the temporary file along (unfinished.h).
// Whatever goes wrong is an Error(failed) that names `path`;
// on Windows that a program has the old file mapped goes wrong.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* doing, std::error_code error);
  void abandon() noexcept;

  std::filesystem::path path_;    // as the caller named it
  std::filesystem::path target_;  // what is replaced
  std::filesystem::path temporary_;
  std::optional<Unfinished> unfinished_;
  system::File file_;
};

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes);

// A hidden name beside `target` for what is not finished. No two calls of this process give the same one;
// other processes differ in their number.
std::filesystem::path temporary_name(const std::filesystem::path& target);

// Removes from `folder` what killed processes left there under temporary_name() of targets whose names are
// `ours`, files and folders. What a process that still lives may be at stays. For whoever is the only one to
// write these targets, and isn't at it. What can't be removed is in nobody's way.
void remove_left_behind(const std::filesystem::path& folder,
                        const std::function<bool(std::string_view name)>& ours);

}  // namespace vitrine
