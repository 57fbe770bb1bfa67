#include "runtime/util/mapped_file.h"

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::bad_file, "cannot read " + shown(path) + ": " + why);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  system::File file;
  if (const std::error_code error = file.open(path)) fail(path, error.message());
  system::FileStatus status;
  if (const std::error_code error = file.status(status)) fail(path, error.message());
  if (status.kind == system::FileKind::folder) fail(path, "it is a folder, expected a file");
  if (status.kind != system::FileKind::regular) fail(path, "it is not a regular file");
  if (status.bytes > SIZE_MAX) fail(path, "it is larger than the address space");
  if (status.bytes == 0) return;  // an empty mapping is not possible
  const auto size = static_cast<size_t>(status.bytes);
  const std::byte* memory = nullptr;
  if (const std::error_code error = file.map(size, memory)) fail(path, error.message());
  bytes_ = {memory, size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) system::unmap(bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::forget(std::span<const std::byte> part) const { system::forget(part); }

}  // namespace vitrine
