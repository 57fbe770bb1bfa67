#include "tests/support/system.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <system_error>

namespace vitrine::test {

Variables::Variables(const std::map<std::string, std::optional<std::string>>& values) {
  for (const auto& [name, value] : values) set(name, value);
}

Variables::~Variables() {
  for (const auto& [name, value] : before_) set_variable(name, value);
}

void Variables::set(const std::string& name, const std::optional<std::string>& value) {
  const char* before = std::getenv(name.c_str());
  before_.try_emplace(name, before == nullptr ? std::nullopt : std::optional<std::string>(before));
  set_variable(name, value);
}

void make_link(const std::filesystem::path& to, const std::filesystem::path& link) {
  std::error_code error;
  std::filesystem::create_symlink(to, link, error);
  if (error == std::errc::function_not_supported) SKIP("this system makes no symbolic links");
  if (error) throw std::filesystem::filesystem_error("make_link", link, error);
}

void grow_file(const std::filesystem::path& path, uint64_t bytes) {
  std::error_code error;
  std::filesystem::resize_file(path, bytes, error);
  if (error == std::errc::file_too_large) SKIP("this system makes no files of " << bytes << " bytes");
  if (error) throw std::filesystem::filesystem_error("grow_file", path, error);
}

void set_time(const std::filesystem::path& path, std::filesystem::file_time_type time) {
  std::error_code error;
  std::filesystem::last_write_time(path, time, error);
  if (error == std::errc::permission_denied) SKIP("the time of " << path << " can't be set");
  if (error) throw std::filesystem::filesystem_error("set_time", path, error);
}

}  // namespace vitrine::test
