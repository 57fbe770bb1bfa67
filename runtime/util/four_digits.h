// Numbers as sentences have them.
#pragma once

#include <cstdio>
#include <string>

namespace vitrine {

// "0.8123", "1.2e+05".
inline std::string four_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace vitrine
