#include "runtime/util/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>

namespace vitrine::system {
namespace {

std::error_code last_error() { return {errno, std::generic_category()}; }

std::error_code failed_if(bool failed) { return failed ? last_error() : std::error_code(); }

uint64_t nanoseconds(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

#ifdef __APPLE__
const timespec& modified(const struct stat& found) { return found.st_mtimespec; }
const timespec& changed(const struct stat& found) { return found.st_ctimespec; }
#else
const timespec& modified(const struct stat& found) { return found.st_mtim; }
const timespec& changed(const struct stat& found) { return found.st_ctim; }
#endif

FileStatus status_from(const struct stat& found) {
  return {.kind = S_ISREG(found.st_mode)   ? FileKind::regular
                  : S_ISDIR(found.st_mode) ? FileKind::folder
                                           : FileKind::other,
          .device = static_cast<uint64_t>(found.st_dev),
          .number = static_cast<uint64_t>(found.st_ino),
          .bytes = static_cast<uint64_t>(found.st_size),
          .modified = nanoseconds(modified(found)),
          .changed = nanoseconds(changed(found))};
}

int number_of(intptr_t handle) { return static_cast<int>(handle); }

std::error_code sync_number(int number) {
  const std::error_code error = failed_if(fsync(number) != 0);
  // No file of a kind that can be brought to a disk.
  return error == std::errc::invalid_argument || error == std::errc::not_supported ? std::error_code()
                                                                                   : error;
}

}  // namespace

std::error_code status_of(const std::filesystem::path& path, FileStatus& status) {
  struct stat found{};
  if (stat(path.c_str(), &found) != 0) return last_error();
  status = status_from(found);
  return {};
}

File::~File() { close(); }

std::error_code File::open(const std::filesystem::path& path) {
  handle_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  return failed_if(handle_ < 0);
}

std::error_code File::create(const std::filesystem::path& path) {
  handle_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return failed_if(handle_ < 0);
}

std::error_code File::open_or_create(const std::filesystem::path& path) {
  handle_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  return failed_if(handle_ < 0);
}

std::error_code File::status(FileStatus& status) const {
  struct stat found{};
  if (fstat(number_of(handle_), &found) != 0) return last_error();
  status = status_from(found);
  return {};
}

std::error_code File::read(uint64_t offset, std::span<std::byte> into, size_t& count) const {
  count = 0;
  while (count < into.size()) {
    const ssize_t got = pread(number_of(handle_), into.data() + count, into.size() - count,
                              static_cast<off_t>(offset + count));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return last_error();
    if (got == 0) break;
    count += static_cast<size_t>(got);
  }
  return {};
}

std::error_code File::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(number_of(handle_), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return last_error();
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

std::error_code File::cut(uint64_t bytes) {
  const auto end = static_cast<off_t>(bytes);
  return failed_if(ftruncate(number_of(handle_), end) != 0 || lseek(number_of(handle_), end, SEEK_SET) < 0);
}

std::error_code File::take_permissions_of(const std::filesystem::path& other) {
  struct stat found{};
  return failed_if(stat(other.c_str(), &found) != 0 ||
                   fchmod(number_of(handle_), found.st_mode & 07777) != 0);
}

std::error_code File::sync() { return sync_number(number_of(handle_)); }

std::error_code File::close() {
  const intptr_t handle = std::exchange(handle_, closed);
  return failed_if(handle >= 0 && ::close(number_of(handle)) != 0);
}

std::error_code File::map(size_t bytes, const std::byte*& memory) const {
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, number_of(handle_), 0);
  if (mapped == MAP_FAILED) return last_error();
  memory = static_cast<const std::byte*>(mapped);
  return {};
}

void unmap(std::span<const std::byte> memory) {
  munmap(const_cast<std::byte*>(memory.data()), memory.size());
}

void forget(std::span<const std::byte> memory) {
  // Only whole pages can go; the ones at the ends may hold bytes that are still wanted.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(memory.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(memory.data() + memory.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return failed_if(::rename(from.c_str(), to.c_str()) != 0);
}

bool exchange(const std::filesystem::path& a, const std::filesystem::path& b) {
#ifdef RENAME_EXCHANGE
  return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
#else
  return a == b;
#endif
}

std::error_code make_folder(const std::filesystem::path& path) {
  return failed_if(mkdir(path.c_str(), 0777) != 0);
}

std::error_code list_folder(const std::filesystem::path& path,
                            const std::function<void(std::string_view name, EntryKind kind)>& take) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(path.c_str()), &closedir);
  if (!listing) return last_error();
  while (true) {
    errno = 0;
    const dirent* entry = readdir(listing.get());
    if (!entry) return failed_if(errno != 0);
    const bool unknown = entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK;
    take(entry->d_name, unknown                   ? EntryKind::unknown
                        : entry->d_type == DT_DIR ? EntryKind::folder
                                                  : EntryKind::other);
  }
}

std::error_code sync_folder(const std::filesystem::path& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return {};  // it may be written but not read
  const std::error_code error = sync_number(folder);
  ::close(folder);
  return error;
}

void remove(const char* path) noexcept {
  if (unlink(path) != 0) rmdir(path);
}

uint64_t process_number() { return static_cast<uint64_t>(getpid()); }

bool process_is_gone(uint64_t number) {
  const auto id = static_cast<pid_t>(number);
  return id > 0 && static_cast<uint64_t>(id) == number && kill(id, 0) != 0 && errno == ESRCH;
}

std::vector<int> ending_signals() {
  std::vector<int> signals;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old{};
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) signals.push_back(signal);
  }
  return signals;
}

void handle_once(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigfillset(&action.sa_mask);  // else another signal could end the process in the middle
  sigaction(signal, &action, nullptr);
}

void end_by(int signal) { raise(signal); }

bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

std::vector<std::string> begin_program(int count, char** values) {
  return {values + std::min(count, 1), values + count};
}

void say_failure(const std::string& program, const std::string& sentence) {
  std::fprintf(stderr, "%s: %s\n", program.c_str(), sentence.c_str());
}

const char* variable(const char* name) { return std::getenv(name); }

std::optional<std::filesystem::path> user_cache() {
  const char* home = variable("HOME");
  if (home == nullptr || *home == '\0') return std::nullopt;
  return std::filesystem::path(home) / ".cache";
}

std::vector<std::filesystem::path> font_folders() {
  std::vector<std::filesystem::path> folders{"/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts",
                                             "/System/Library/Fonts"};
  if (const char* home = variable("HOME"); home != nullptr && *home != '\0') {
    for (const char* folder : {".local/share/fonts", ".fonts", "Library/Fonts"})
      folders.push_back(std::filesystem::path(home) / folder);
  }
  return folders;
}

std::filesystem::path program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

std::optional<double> thread_seconds() {
  timespec now{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) return std::nullopt;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

#ifdef __linux__
const bool steady_clock_is_monotonic = true;
#else
const bool steady_clock_is_monotonic = false;
#endif

}  // namespace vitrine::system
