#include "tests/support/system.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

namespace vitrine::test {

void set_variable(const std::string& name, const std::optional<std::string>& value) {
  _putenv_s(name.c_str(), value.value_or("").c_str());
}

void make_pipe(const std::filesystem::path&) { SKIP("pipes lie in no folders here"); }

std::string name_beyond_unicode(const std::string&) { SKIP("names of files are Unicode here"); }

const std::filesystem::path cache_below_home;

// Wine hands no layers on.
Validation usual_validation() { return Validation::off; }

void keep_drivers_loaded() {}

}  // namespace vitrine::test
