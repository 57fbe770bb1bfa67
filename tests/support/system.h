// What systems differ in, for tests.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "runtime/vk/instance.h"

namespace vitrine::test {

// Variables of the environment that a test sets; the values from before come back when this goes.
class Variables {
 public:
  // Nothing unsets.
  explicit Variables(const std::map<std::string, std::optional<std::string>>& values = {});
  ~Variables();
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  void set(const std::string& name, const std::optional<std::string>& value);

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

void set_variable(const std::string& name, const std::optional<std::string>& value);

// A symbolic link, or what depends on one is skipped: on Windows they take a right that few have.
void make_link(const std::filesystem::path& to, const std::filesystem::path& link);
// The name again, or what depends on one that is not UTF-8 is skipped: Windows has none.
std::string name_beyond_unicode(const std::string& name);
// Likewise a pipe among files.
void make_pipe(const std::filesystem::path& path);
// Skips where a file can't be so large.
void grow_file(const std::filesystem::path& path, uint64_t bytes);
// What the system says of a file that isn't there.
extern const std::string no_such_file;
// Skips where a folder's time can't be set.
void set_time(const std::filesystem::path& path, std::filesystem::file_time_type time);

// Where programs keep what they can make again, below HOME (on Windows below LOCALAPPDATA).
extern const std::filesystem::path cache_below_home;

// For VK_DRIVER_FILES, so that no device is found; skips where that hides none.
std::string no_driver_files();

// What tests run shaders under where VITRINE_VALIDATE doesn't say.
Validation usual_validation();
// The same for programs, as VITRINE_VALIDATE; empty: none.
extern const std::string usual_validation_name;

// Keeps the drivers in the process to its end. Unloaded, they take away what points to memory of theirs,
// which LeakSanitizer then counts as lost, without a name to excuse it by (Mesa 26.1: 128 bytes).
void keep_drivers_loaded();

}  // namespace vitrine::test
