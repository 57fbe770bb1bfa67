#include "tests/support/system.h"

#include <cstdlib>

namespace vitrine::test {

void set_variable(const std::string& name, const std::optional<std::string>& value) {
  _putenv_s(name.c_str(), value.value_or("").c_str());
}

const std::filesystem::path cache_below_home;

// Wine hands no layers on.
Validation usual_validation() { return Validation::off; }

void keep_drivers_loaded() {}

}  // namespace vitrine::test
