#include "runtime/util/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& target) {
  return target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
}

// Takes ".NUMBER" off the end of a name.
std::optional<uint64_t> take_number(std::string_view& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(dot + 1);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  name = name.substr(0, dot);
  return number;
}

// Whether it is a temporary_name() of one of these targets, of a process that is gone.
bool is_left_behind(std::string_view name, const std::function<bool(std::string_view)>& ours) {
  constexpr std::string_view end = ".tmp";
  if (!name.starts_with('.') || !name.ends_with(end)) return false;
  name = name.substr(1, name.size() - 1 - end.size());
  const std::optional<uint64_t> counted = take_number(name), process = take_number(name);
  if (!counted || !process || !ours(name)) return false;
  const auto id = static_cast<pid_t>(*process);
  if (id <= 0 || static_cast<uint64_t>(id) != *process) return false;
  // In a container every process has the number of the one before.
  return id == getpid() || (kill(id, 0) != 0 && errno == ESRCH);
}

}  // namespace

std::filesystem::path temporary_name(const std::filesystem::path& target) {
  static std::atomic<unsigned> counter{0};
  constexpr size_t kept_of_the_name = 128;  // a name may have 255 bytes, and the suffix needs some
  std::string name = "." + target.filename().string().substr(0, kept_of_the_name);
  name += "." + std::to_string(getpid()) + "." + std::to_string(counter++) + ".tmp";
  return target.parent_path() / name;
}

void remove_left_behind(const std::filesystem::path& folder,
                        const std::function<bool(std::string_view name)>& ours) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_left_behind(entry->path().filename().string(), ours)) left.push_back(entry->path());
  }
  for (const std::filesystem::path& path : left) std::filesystem::remove_all(path, error);
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), target_(path_) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path_, error);
  if (std::filesystem::is_symlink(status)) {
    target_ = std::filesystem::weakly_canonical(path_, error);
    if (error) fail("follow the link of", error.value());
  }
  if (!path_.has_filename()) fail("create", EISDIR);
  struct stat old{};
  const bool replaces = stat(target_.c_str(), &old) == 0;
  if (!replaces && errno != ENOENT) fail("create", errno);
  // Renaming over a device or a pipe would destroy it.
  if (replaces && !S_ISREG(old.st_mode)) {
    throw Error(ErrorCode::failed, "cannot write " + shown(path_) + ": it is " +
                                       (S_ISDIR(old.st_mode) ? "a folder" : "not a regular file") +
                                       ", expected the name of a file");
  }
  do {
    temporary_ = temporary_name(target_);
    unfinished_.emplace(temporary_);
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);  // left by a killed process that had our number
  if (descriptor_ < 0) fail("create", errno);
  if (replaces && fchmod(descriptor_, old.st_mode & 07777) != 0) fail("set the permissions of", errno);
}

AtomicFile::~AtomicFile() { abandon(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (descriptor_ < 0) fail("write", EBADF);
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("write", errno);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  if (descriptor_ < 0) fail("write", EBADF);
  if (fsync(descriptor_) != 0) fail("write", errno);
  // Some file systems say only on closing that there was no room.
  if (close(std::exchange(descriptor_, -1)) != 0) fail("write", errno);
  if (rename(temporary_.c_str(), target_.c_str()) != 0) fail("replace", errno);
  temporary_.clear();
  unfinished_.reset();

  // The new name itself is safe once the folder is on the disk.
  const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a folder that may be written but not read
  const int status = fsync(folder);
  const int error = errno;
  close(folder);
  if (status != 0 && error != EINVAL && error != ENOTSUP) fail("bring to the disk", error);
}

void AtomicFile::fail(const char* doing, int error) {
  abandon();  // the constructor may throw this too, and then no destructor runs
  throw Error(ErrorCode::failed, std::string("cannot ") + doing + " " + shown(path_) + ": " +
                                     std::generic_category().message(error));
}

void AtomicFile::abandon() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  unfinished_.reset();
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace vitrine
