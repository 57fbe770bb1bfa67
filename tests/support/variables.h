// What systems differ in, for tests: posix/ and windows/ have the functions at the end.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace vitrine::test {

// Variables of the environment that a test sets; the values from before come back when this goes.
class Variables {
 public:
  // An empty value unsets.
  explicit Variables(const std::map<std::string, std::string>& values = {});
  ~Variables();
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  void set(const std::string& name, const std::string& value);

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

void set_variable(const std::string& name, const std::optional<std::string>& value);

// Keeps the drivers in the process to its end. Unloaded, they take away what points to memory of theirs,
// which LeakSanitizer then counts as lost, without a name to excuse it by (Mesa 26.1: 128 bytes).
void keep_drivers_loaded();

}  // namespace vitrine::test
