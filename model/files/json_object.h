// Reads a published config.json field by field, naming the file and the field that is not as it must be.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/graph/activation.h"

namespace vitrine {

class JsonObject {
 public:
  // Throws Error(bad_file) when `json`, which must outlive this, is no object. `file` is what errors begin
  // with.
  JsonObject(const nlohmann::json& json, std::string file);

  // A member; null when it isn't there or is JSON's null.
  const nlohmann::json* find(const char* key) const;
  // Nothing when the member isn't there; Error(bad_file) when it is of another type.
  std::optional<uint64_t> whole(const char* key) const;
  std::optional<double> number(const char* key) const;
  std::optional<bool> flag(const char* key) const;
  std::optional<std::string> text(const char* key) const;
  std::optional<JsonObject> object(const char* key) const;
  // One number for both sides, or [height, width].
  void sides(const char* key, uint64_t& height, uint64_t& width) const;
  // By the names that timm and transformers give activations.
  std::optional<Activation> activation(const char* key) const;

  [[noreturn]] void fail(const char* key, const nlohmann::json& value, const std::string& expected) const;
  const std::string& file() const { return file_; }

 private:
  const nlohmann::json* json_;
  std::string file_;
};

std::optional<uint64_t> as_whole(const nlohmann::json& value);
// A list of whole numbers, which stands under this key; anything else is an Error(bad_file).
std::vector<uint64_t> whole_list(const JsonObject& object, const char* key, const nlohmann::json& value);

template <typename Field, typename Value>
void assign(Field& field, const std::optional<Value>& value) {
  if (value) field = static_cast<Field>(*value);
}

}  // namespace vitrine
