// A path that becomes a std::string by itself on every system, as std::filesystem's does where its own
// strings are of bytes.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

namespace vitrine::test {

class Path : public std::filesystem::path {
 public:
  using std::filesystem::path::path;
  Path(std::filesystem::path other) : std::filesystem::path(std::move(other)) {}
  operator std::string() const { return string(); }
  friend Path operator/(const Path& folder, const std::filesystem::path& name) {
    return static_cast<const std::filesystem::path&>(folder) / name;
  }
};

// As the system writes it.
inline std::string native(const std::filesystem::path& path) {
  return std::filesystem::path(path).make_preferred().string();
}

}  // namespace vitrine::test
