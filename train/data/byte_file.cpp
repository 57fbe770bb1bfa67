#include "train/data/byte_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

uint64_t nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

FileStamp stamp_from(const struct stat& status) {
  return {.number = static_cast<uint64_t>(status.st_ino),
          .bytes = static_cast<uint64_t>(status.st_size),
          .modified = nanoseconds(status.st_mtim),
          .changed = nanoseconds(status.st_ctim)};
}

}  // namespace

FileStamp stamp_of(const std::filesystem::path& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0)
    throw Error(ErrorCode::bad_file, "cannot read " + shown(path) + ": " + reason(errno));
  return stamp_from(status);
}

ByteFile::ByteFile(std::filesystem::path path) : path_(std::move(path)), name_(shown(path_)) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait for ever.
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(reason(errno));
  struct stat status{};
  const int error = fstat(descriptor_, &status) != 0 ? errno : 0;
  if (error != 0 || !S_ISREG(status.st_mode)) {
    close(std::exchange(descriptor_, -1));
    fail(error != 0 ? reason(error) : "it is not a regular file");
  }
  stamp_ = stamp_from(status);
}

ByteFile::ByteFile(std::filesystem::path path, const FileStamp& before) : ByteFile(std::move(path)) {
  // Another name or other rights are no change of what it holds.
  if (stamp_.bytes == before.bytes && stamp_.modified == before.modified) return;
  fail("it was changed since its pictures were looked up, expected it to stay as it is");
}

ByteFile::~ByteFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ByteFile::fail(const std::string& why) const {
  throw Error(ErrorCode::bad_file, "cannot read " + name_ + ": " + why);
}

void ByteFile::read(uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = pread(descriptor_, into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(reason(errno));
    if (count == 0) fail("it ends at byte " + std::to_string(offset) + ", expected more");
    into = into.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
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
