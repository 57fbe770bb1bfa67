// A fresh folder for one test, deleted with everything in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::test {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  // Writes a file of these bytes and returns its path.
  std::filesystem::path file(std::string_view name, std::string_view content) const;
  // The names in the folder, sorted.
  std::vector<std::string> names() const;

 private:
  std::filesystem::path path_;
};

std::string read_whole_file(const std::filesystem::path& path);
std::vector<std::byte> to_bytes(std::string_view text);

}  // namespace vitrine::test
