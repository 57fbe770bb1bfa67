// Words of JSON files that stand for an enumeration's values.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/files/json_object.h"
#include "runtime/util/error.h"

namespace vitrine {

// `names` is a list of pairs, a value and its word.
template <typename Names, typename Enum>
std::string_view name_among(const Names& names, Enum value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "?";
}

// Leaves `value` as it is where there is no such member; fails naming the words for one that isn't known.
template <typename Names, typename Enum>
void read_name(const JsonObject& object, const char* key, const Names& names, Enum& value) {
  const auto text = object.text(key);
  if (!text) return;
  std::string expected;
  for (const auto& [known, name] : names) {
    if (name == *text) {
      value = known;
      return;
    }
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  }
  object.fail(key, nlohmann::json(*text), "one of " + expected);
}

// Throws where an object has a member that nobody reads.
template <typename Known>
void check_keys(const JsonObject& object, const nlohmann::json& json, const Known& known) {
  for (const auto& [key, value] : json.items()) {
    std::string expected;
    bool found = false;
    for (const std::string_view name : known) {
      found = found || name == key;
      expected += (expected.empty() ? "" : ", ") + std::string(name);
    }
    if (!found)
      throw Error(ErrorCode::bad_file,
                  object.file() + ": \"" + key + "\" is not known, expected some of " + expected);
  }
}
inline void check_keys(const JsonObject& object, const nlohmann::json& json,
                       std::initializer_list<std::string_view> known) {
  check_keys<std::initializer_list<std::string_view>>(object, json, known);
}

}  // namespace vitrine
