#include "model/files/json_object.h"

#include "runtime/util/error.h"

namespace vitrine {
namespace {
using Json = nlohmann::json;
}  // namespace

std::optional<uint64_t> as_whole(const Json& value) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0))
    return std::nullopt;
  return value.get<uint64_t>();
}

JsonObject::JsonObject(const Json& json, std::string file) : json_(&json), file_(std::move(file)) {
  if (!json.is_object())
    throw Error(ErrorCode::bad_file, file_ + ": found a JSON " + json.type_name() + ", expected an object");
}

const Json* JsonObject::find(const char* key) const {
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

std::optional<uint64_t> JsonObject::whole(const char* key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (const auto number = as_whole(*value)) return number;
  fail(key, *value, "a whole number");
}

std::optional<double> JsonObject::number(const char* key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_number()) fail(key, *value, "a number");
  return value->get<double>();
}

std::optional<bool> JsonObject::flag(const char* key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) fail(key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonObject::text(const char* key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_string()) fail(key, *value, "a string");
  return value->get<std::string>();
}

std::optional<JsonObject> JsonObject::object(const char* key) const {
  const Json* value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_object()) fail(key, *value, "an object");
  return JsonObject(*value, file_ + " (" + key + ")");
}

void JsonObject::sides(const char* key, uint64_t& height, uint64_t& width) const {
  const Json* value = find(key);
  if (!value) return;
  const bool two = value->is_array() && value->size() == 2;
  const auto first = as_whole(two ? (*value)[0] : *value), second = as_whole(two ? (*value)[1] : *value);
  if (!first || !second) fail(key, *value, "a whole number or two of them");
  height = *first;
  width = *second;
}

std::optional<Activation> JsonObject::activation(const char* key) const {
  const auto name = text(key);
  if (!name) return std::nullopt;
  if (*name == "gelu") return Activation::gelu;
  if (*name == "gelu_tanh" || *name == "gelu_new" || *name == "gelu_fast" || *name == "gelu_pytorch_tanh")
    return Activation::gelu_tanh;
  if (*name == "quick_gelu") return Activation::gelu_quick;
  if (*name == "silu" || *name == "swish") return Activation::silu;
  if (*name == "tanh") return Activation::tanh;
  if (*name == "relu") return Activation::relu;
  fail(key, Json(*name), "gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, silu, tanh or relu");
}

void JsonObject::fail(const char* key, const Json& value, const std::string& expected) const {
  std::string found = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > 60) found = found.substr(0, 60) + "...";
  throw Error(ErrorCode::bad_file,
              file_ + ": \"" + std::string(key) + "\" is " + found + ", expected " + expected);
}

std::vector<uint64_t> whole_list(const JsonObject& object, const char* key, const Json& value) {
  std::vector<uint64_t> numbers;
  for (const Json& entry : value.is_array() ? value : Json::array()) {
    if (const auto number = as_whole(entry)) numbers.push_back(*number);
  }
  if (!value.is_array() || numbers.size() != value.size()) object.fail(key, value, "a list of whole numbers");
  return numbers;
}

}  // namespace vitrine
