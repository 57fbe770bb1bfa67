#include "tests/support/system.h"

#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <system_error>

namespace vitrine::test {

void set_variable(const std::string& name, const std::optional<std::string>& value) {
  _putenv_s(name.c_str(), value.value_or("").c_str());
}

void make_pipe(const std::filesystem::path&) { SKIP("pipes lie in no folders here"); }

std::string name_beyond_unicode(const std::string& name) {
  SKIP("names of files are Unicode here");
  return name;
}

const std::string no_such_file = std::error_code(ERROR_FILE_NOT_FOUND, std::system_category()).message();
const std::filesystem::path cache_below_home;

// The loader that Wine hands on reads the variables that Wine itself was started with.
std::string no_driver_files() {
  SKIP("drivers can't be hidden");
  return {};
}

// Wine hands no layers on.
Validation usual_validation() { return Validation::off; }
const std::string usual_validation_name;

void keep_drivers_loaded() {}

}  // namespace vitrine::test
