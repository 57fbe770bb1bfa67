// Names that may have been meant.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine {

// The `count` names that are the fewest letters from `found`, as "a, b or c"; of equal ones those that come
// first.
std::string nearest(std::vector<std::string_view> names, std::string_view found, size_t count = 3);

}  // namespace vitrine
