#include "runtime/util/atomic_file.h"

#include <atomic>
#include <charconv>
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
  // In a container every process has the number of the one before.
  return *process == system::process_number() || system::process_is_gone(*process);
}

}  // namespace

std::filesystem::path temporary_name(const std::filesystem::path& target) {
  static std::atomic<unsigned> counter{0};
  constexpr size_t kept_of_the_name = 128;  // a name may have 255 bytes, and the suffix needs some
  std::string name = "." + target.filename().string().substr(0, kept_of_the_name);
  name += "." + std::to_string(system::process_number()) + "." + std::to_string(counter++) + ".tmp";
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
    if (error) fail("follow the link of", error);
  }
  if (!path_.has_filename()) fail("create", std::make_error_code(std::errc::is_a_directory));
  system::FileStatus old;
  error = system::status_of(target_, old);
  const bool replaces = !error;
  if (error && error != std::errc::no_such_file_or_directory) fail("create", error);
  // Renaming over a device or a pipe would destroy it.
  if (replaces && old.kind != system::FileKind::regular) {
    throw Error(ErrorCode::failed,
                "cannot write " + shown(path_) + ": it is " +
                    (old.kind == system::FileKind::folder ? "a folder" : "not a regular file") +
                    ", expected the name of a file");
  }
  do {
    temporary_ = temporary_name(target_);
    unfinished_.emplace(temporary_);
    error = file_.create(temporary_);
  } while (error == std::errc::file_exists);  // left by a killed process that had our number
  if (error) fail("create", error);
  if (replaces) error = file_.take_permissions_of(target_);
  if (error) fail("set the permissions of", error);
}

AtomicFile::~AtomicFile() { abandon(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!file_.is_open()) fail("write", std::make_error_code(std::errc::bad_file_descriptor));
  if (const std::error_code error = file_.write(bytes)) fail("write", error);
}

void AtomicFile::commit() {
  if (!file_.is_open()) fail("write", std::make_error_code(std::errc::bad_file_descriptor));
  if (const std::error_code error = file_.sync()) fail("write", error);
  if (const std::error_code error = file_.close()) fail("write", error);
  if (const std::error_code error = system::rename(temporary_, target_)) fail("replace", error);
  temporary_.clear();
  unfinished_.reset();

  // The new name itself is safe once the folder is on the disk.
  if (const std::error_code error = system::sync_folder(folder_of(target_))) fail("bring to the disk", error);
}

void AtomicFile::fail(const char* doing, std::error_code error) {
  abandon();  // the constructor may throw this too, and then no destructor runs
  throw Error(ErrorCode::failed,
              std::string("cannot ") + doing + " " + shown(path_) + ": " + error.message());
}

void AtomicFile::abandon() noexcept {
  file_.close();
  if (!temporary_.empty()) system::remove(temporary_.c_str());
  temporary_.clear();
  unfinished_.reset();
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace vitrine
