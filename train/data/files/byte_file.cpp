#include "train/data/files/byte_file.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

FileStamp stamp_from(const system::FileStatus& status) {
  return {
      .number = status.number, .bytes = status.bytes, .modified = status.modified, .changed = status.changed};
}

}  // namespace

FileStamp stamp_of(const std::filesystem::path& path) {
  system::FileStatus status;
  if (const std::error_code error = system::status_of(path, status))
    throw Error(ErrorCode::bad_file, "cannot read " + shown(path) + ": " + error.message());
  return stamp_from(status);
}

ByteFile::ByteFile(std::filesystem::path path) : path_(std::move(path)), name_(shown(path_)) {
  if (const std::error_code error = file_.open(path_)) fail(error.message());
  system::FileStatus status;
  if (const std::error_code error = file_.status(status)) fail(error.message());
  if (status.kind != system::FileKind::regular) fail("it is not a regular file");
  stamp_ = stamp_from(status);
}

ByteFile::ByteFile(std::filesystem::path path, const FileStamp& before) : ByteFile(std::move(path)) {
  // Another name or other rights are no change of what it holds.
  if (stamp_.bytes == before.bytes && stamp_.modified == before.modified) return;
  fail("it was changed since its pictures were looked up, expected it to stay as it is");
}

void ByteFile::fail(const std::string& why) const {
  throw Error(ErrorCode::bad_file, "cannot read " + name_ + ": " + why);
}

void ByteFile::read(uint64_t offset, std::span<std::byte> into) const {
  size_t count = 0;
  if (const std::error_code error = file_.read(offset, into, count)) fail(error.message());
  if (count < into.size()) fail("it ends at byte " + std::to_string(offset + count) + ", expected more");
}

std::vector<std::byte> ByteFile::read(uint64_t offset, uint64_t bytes) const {
  if (offset > size() || bytes > size() - offset) {
    fail("found " + std::to_string(size()) + " bytes, expected " + std::to_string(bytes) + " from byte " +
         std::to_string(offset) + " on");
  }
  std::vector<std::byte> result(bytes);
  read(offset, result);
  return result;
}

std::span<const std::byte> FileWindow::at(uint64_t offset, size_t bytes) {
  const uint64_t left = offset < file_.size() ? file_.size() - offset : 0;
  const auto wanted = static_cast<size_t>(std::min<uint64_t>(bytes, left));
  if (offset < begin_ || offset + wanted > begin_ + bytes_.size()) {
    bytes_.resize(static_cast<size_t>(std::min<uint64_t>(std::max(bytes, usual_), left)));
    begin_ = offset;
    file_.read(offset, bytes_);
  }
  return std::span<const std::byte>(bytes_).subspan(static_cast<size_t>(offset - begin_), wanted);
}

}  // namespace vitrine
