// Words of a configuration file that stand for the values of an enumeration.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "model/files/json_object.h"
#include "runtime/util/error.h"

namespace vitrine {

// `names`: pairs of a value and its word.
template <typename Names, typename Enum>
std::string_view name_among(const Names& names, Enum value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "?";
}

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

}  // namespace vitrine
