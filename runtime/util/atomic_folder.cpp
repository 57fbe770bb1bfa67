#include "runtime/util/atomic_folder.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"

namespace vitrine {
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
  if (error) fail("make the folder above", error);
  std::filesystem::path made;
  do {
    made = temporary_name(target_);
    unfinished_.clear();
    unfinished_.emplace_back(made);
    for (const std::string& name : names_) unfinished_.emplace_back(made / name);
    error = system::make_folder(made);
  } while (error == std::errc::file_exists);  // left by a killed process that had our number
  if (error) fail("make", error);
  temporary_ = made;
}

AtomicFolder::~AtomicFolder() {
  if (!temporary_.empty()) remove(temporary_);
}

bool AtomicFolder::has_old() const {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(target_, error);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  if (error) fail("look at", error);
  const auto refuse = [&](const std::string& found) {
    throw Error(ErrorCode::failed, "cannot write to " + shown(target_) + ": found " + found +
                                       ", expected a new or empty folder, or one that was written before");
  };
  if (!std::filesystem::is_directory(status)) refuse("a file");
  std::filesystem::directory_iterator entries(target_, error);
  if (error) fail("read", error);
  for (; entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (std::ranges::find(names_, name) == names_.end()) refuse(in_quotes(name) + " in it");
  }
  if (error) fail("read", error);
  return true;
}

void AtomicFolder::commit() {
  if (const std::error_code error = system::sync_folder(temporary_)) fail("write", error);
  const bool replaces = has_old();
  const std::error_code error = system::rename(temporary_, target_);
  if (!error) {  // nothing there, or an empty folder
    temporary_.clear();
  } else if (!replaces || (error != std::errc::directory_not_empty && error != std::errc::file_exists)) {
    fail("make", error);
  } else if (system::exchange(temporary_, target_)) {
    remove(std::exchange(temporary_, {}));
  } else {
    // Each file whole, if not all at once.
    for (const std::string& name : names_) {
      const std::error_code kept = system::rename(temporary_ / name, target_ / name);
      if (!kept) continue;
      if (kept != std::errc::no_such_file_or_directory) fail("replace the files of", kept);
      system::remove((target_ / name).c_str());
    }
    remove(std::exchange(temporary_, {}));
  }
  unfinished_.clear();
  if (const std::error_code unsafe = system::sync_folder(target_.parent_path()))
    fail("bring to the disk", unsafe);
}

void AtomicFolder::remove(const std::filesystem::path& folder) const noexcept {
  // By name: what somebody put there meanwhile stays.
  for (const std::string& name : names_) system::remove((folder / name).c_str());
  system::remove(folder.c_str());
}

void AtomicFolder::fail(const char* doing, std::error_code error) const {
  throw Error(ErrorCode::failed,
              std::string("cannot ") + doing + " " + shown(target_) + ": " + error.message());
}

}  // namespace vitrine
