#include "runtime/util/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::bad_file, "cannot read " + shown(path) + ": " + why);
}

std::string reason(int error) { return std::generic_category().message(error); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait for ever.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, reason(errno));
  struct stat status{};
  if (fstat(file.get(), &status) != 0) fail(path, reason(errno));
  if (S_ISDIR(status.st_mode)) fail(path, "it is a folder, expected a file");
  if (!S_ISREG(status.st_mode)) fail(path, "it is not a regular file");
  const auto size = static_cast<uintmax_t>(status.st_size);
  if (size > SIZE_MAX) fail(path, "it is larger than the address space");
  if (size == 0) return;  // an empty mapping is not possible
  void* memory = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) fail(path, reason(errno));
  bytes_ = {static_cast<const std::byte*>(memory), static_cast<size_t>(size)};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::forget(std::span<const std::byte> part) const {
  // Only whole pages can go; the ones at the ends may hold bytes that are still wanted.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (begin >= end) return;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // a hint: failing costs memory only
}

}  // namespace vitrine
