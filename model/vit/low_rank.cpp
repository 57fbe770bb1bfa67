#include "model/vit/low_rank.h"

#include <charconv>

namespace vitrine {

std::string RowsName::text() const {
  return parameter + "[" + std::to_string(first) + ":" + std::to_string(first + rows) + "]";
}

RowsName rows_named(std::string_view name) {
  const size_t open = name.rfind('['), colon = name.rfind(':');
  if (open == std::string_view::npos || colon == std::string_view::npos || !name.ends_with(']')) return {};
  RowsName found{.parameter = std::string(name.substr(0, open))};
  uint64_t end = 0;
  std::from_chars(name.data() + open + 1, name.data() + colon, found.first);
  std::from_chars(name.data() + colon + 1, name.data() + name.size() - 1, end);
  found.rows = end - found.first;
  return found;
}

}  // namespace vitrine
