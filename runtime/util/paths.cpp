#include "runtime/util/paths.h"

#include <string>
#include <system_error>

#include "runtime/util/text.h"

namespace vitrine {
namespace {

std::filesystem::file_type type_of(const std::filesystem::path& path, ErrorCode code) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::none)
    throw Error(code, "cannot look at " + shown(path) + ": " + error.message());
  return type;
}

}  // namespace

bool path_exists(const std::filesystem::path& path, ErrorCode code) {
  return type_of(path, code) != std::filesystem::file_type::not_found;
}

bool is_folder(const std::filesystem::path& path, ErrorCode code) {
  return type_of(path, code) == std::filesystem::file_type::directory;
}

bool is_file(const std::filesystem::path& path, ErrorCode code) {
  return type_of(path, code) == std::filesystem::file_type::regular;
}

void make_folders(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(ErrorCode::failed, "cannot make the folder " + shown(path) + ": " + error.message());
}

}  // namespace vitrine
