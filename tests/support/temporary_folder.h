// A fresh folder for one test, deleted with everything in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/path.h"

namespace vitrine::test {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const Path& path() const { return path_; }
  Path operator/(std::string_view name) const { return Path(path_ / name).make_preferred(); }
  // Writes a file of these bytes and returns its path.
  Path file(std::string_view name, std::string_view content) const;
  // The names in the folder, sorted.
  std::vector<std::string> names() const;

 private:
  Path path_;
};

std::string read_whole_file(const std::filesystem::path& path);
std::vector<std::byte> to_bytes(std::string_view text);

}  // namespace vitrine::test
