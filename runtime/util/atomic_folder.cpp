#include "runtime/util/atomic_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// 0, or the error. Folders that can't be synced are no reason to fail.
int sync_folder(const std::filesystem::path& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return 0;
  const int error = fsync(folder) == 0 ? 0 : errno;
  close(folder);
  return error == EINVAL || error == ENOTSUP ? 0 : error;
}

// Swaps two names in one step; false where the system or its file system can't.
bool exchange(const std::filesystem::path& a, const std::filesystem::path& b) {
#ifdef RENAME_EXCHANGE
  return renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
#else
  return a == b;
#endif
}

}  // namespace

AtomicFolder::AtomicFolder(const std::filesystem::path& target, std::vector<std::string> names)
    : names_(std::move(names)) {
  std::error_code error;
  target_ = std::filesystem::absolute(target, error);
  if (!error) target_ = std::filesystem::weakly_canonical(target_, error);
  if (!target_.has_filename()) target_ = target_.parent_path();
  if (error || target.empty() || !target_.has_filename()) {
    throw Error(ErrorCode::failed,
                "cannot make a folder " + in_quotes(target.string()) + ", expected its name");
  }
  has_old();
  std::filesystem::create_directories(target_.parent_path(), error);
  if (error) fail("make the folder above", error.value());
  std::filesystem::path made;
  int failed = 0;
  do {
    made = temporary_name(target_);
    unfinished_.clear();
    unfinished_.emplace_back(made);
    for (const std::string& name : names_) unfinished_.emplace_back(made / name);
    failed = mkdir(made.c_str(), 0777) == 0 ? 0 : errno;
  } while (failed == EEXIST);  // left by a killed process that had our number
  if (failed != 0) fail("make", failed);
  temporary_ = made;
}

AtomicFolder::~AtomicFolder() {
  if (!temporary_.empty()) remove(temporary_);
}

bool AtomicFolder::has_old() const {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(target_, error);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  if (error) fail("look at", error.value());
  const auto refuse = [&](const std::string& found) {
    throw Error(ErrorCode::failed, "cannot write to " + shown(target_) + ": found " + found +
                                       ", expected a new or empty folder, or one that was written before");
  };
  if (!std::filesystem::is_directory(status)) refuse("a file");
  std::filesystem::directory_iterator entries(target_, error);
  if (error) fail("read", error.value());
  for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (std::ranges::find(names_, name) == names_.end()) refuse(in_quotes(name) + " in it");
  }
  if (error) fail("read", error.value());
  return true;
}

void AtomicFolder::commit() {
  if (const int error = sync_folder(temporary_)) fail("write", error);
  const bool replaces = has_old();
  if (rename(temporary_.c_str(), target_.c_str()) == 0) {  // nothing there, or an empty folder
    temporary_.clear();
  } else if (!replaces || (errno != ENOTEMPTY && errno != EEXIST)) {
    fail("make", errno);
  } else if (exchange(temporary_, target_)) {
    remove(std::exchange(temporary_, {}));
  } else {
    // Each file whole, if not all at once.
    for (const std::string& name : names_) {
      if (rename((temporary_ / name).c_str(), (target_ / name).c_str()) == 0) continue;
      if (errno != ENOENT) fail("replace the files of", errno);
      unlink((target_ / name).c_str());
    }
    remove(std::exchange(temporary_, {}));
  }
  unfinished_.clear();
  if (const int error = sync_folder(target_.parent_path())) fail("bring to the disk", error);
}

void AtomicFolder::remove(const std::filesystem::path& folder) const noexcept {
  // By name: what somebody put there meanwhile stays.
  for (const std::string& name : names_) unlink((folder / name).c_str());
  rmdir(folder.c_str());
}

void AtomicFolder::fail(const char* doing, int error) const {
  throw Error(ErrorCode::failed, std::string("cannot ") + doing + " " + shown(target_) + ": " +
                                     std::generic_category().message(error));
}

}  // namespace vitrine
