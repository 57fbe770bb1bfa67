// What the tool says under validation where the layer is too old to check synchronization (runtime/vk/instance.cpp).
#pragma once

#include <sstream>
#include <string>

namespace vitrine::test {

// What a program wrote to stderr besides that, line by line.
inline std::string besides_validation_note(const std::string& err) {
  std::istringstream lines(err);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("vitrine: the validation layer is of version ")) rest += line + "\n";
  }
  return rest;
}

}  // namespace vitrine::test
