#include "runtime/util/csv.h"

#include <array>
#include <charconv>

namespace vitrine {
namespace {

template <typename Number>
std::string shortest(Number value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && end == text.data() + text.size();
}

bool looks_like_formula(std::string_view text) {
  constexpr std::string_view beginnings = "=+-@\t";
  return !text.empty() && beginnings.find(text.front()) != std::string_view::npos && !is_number(text);
}

}  // namespace

std::string csv_cell(std::string_view text) {
  const std::string cell = (looks_like_formula(text) ? "'" : "") + std::string(text);
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char letter : cell) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

std::string csv_cell(double value) { return shortest(value); }
std::string csv_cell(float value) { return shortest(value); }

}  // namespace vitrine
