#include "runtime/util/nearest.h"

#include <algorithm>
#include <numeric>

namespace vitrine {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t up = row[j + 1];
      row[j + 1] = std::min({up + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = up;
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::vector<std::string_view> names, std::string_view found, size_t count) {
  std::ranges::stable_sort(names, {}, [&](std::string_view name) { return edit_distance(name, found); });
  names.resize(std::min(count, names.size()));
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + std::string(names[i]);
  return text;
}

}  // namespace vitrine
