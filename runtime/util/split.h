// A list in one text.
#pragma once

#include <string_view>
#include <vector>

namespace vitrine {

// What stands between the separators, in front of the first and behind the last one: one more than there are.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace vitrine
