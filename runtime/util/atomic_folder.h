// Folders whose files belong together, and appear together or not at all.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/util/unfinished.h"

namespace vitrine {

// Makes a folder beside `target` that files are written into; commit() puts it in target's place. Destroyed
// without commit(), it leaves what was there before. A target that is there already may hold `names` and
// nothing else, so that no file of anybody's is lost; they are replaced, and those that weren't written anew
// go. A signal may remove what is unfinished, too (unfinished.h). Whatever goes wrong is an Error(failed)
// that names the target.
class AtomicFolder {
 public:
  AtomicFolder(const std::filesystem::path& target, std::vector<std::string> names);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* doing, std::error_code error) const;
  bool has_old() const;  // throws where it holds what it may not
  void remove(const std::filesystem::path& folder) const noexcept;

  std::filesystem::path target_, temporary_;
  std::vector<std::string> names_;
  std::deque<Unfinished> unfinished_;  // which can't be moved
};

}  // namespace vitrine
