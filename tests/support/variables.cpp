#include "tests/support/variables.h"

#include <cstdlib>

namespace vitrine::test {

Variables::Variables(const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values) set(name, value);
}

Variables::~Variables() {
  for (const auto& [name, value] : before_) set_variable(name, value);
}

void Variables::set(const std::string& name, const std::string& value) {
  const char* before = std::getenv(name.c_str());
  before_.try_emplace(name, before == nullptr ? std::nullopt : std::optional<std::string>(before));
  set_variable(name, value.empty() ? std::nullopt : std::optional<std::string>(value));
}

}  // namespace vitrine::test
