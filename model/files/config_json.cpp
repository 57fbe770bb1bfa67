#include "model/files/config_json.h"

#include <nlohmann/json.hpp>

#include "model/files/config_hugging_face.h"
#include "model/files/config_timm.h"
#include "model/files/json_object.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

void read_own(const Json& fields, ViTConfig& c, const std::string& file) {
  const JsonObject object(fields, file + " (vitrine)");
  for (const auto& [key, value] : fields.items()) {
    if (!value.is_primitive()) object.fail(key.c_str(), value, "a number, a word, true or false");
    set_field(c, key, value.is_string() ? value.get<std::string>() : value.dump(), file, ErrorCode::bad_file);
  }
}

// The image that a config names, where it does: it decides how the position table is read.
InferHints with_image(const JsonObject& object, InferHints hints) {
  uint64_t height = 0, width = 0;
  read_image_size(object, height, width);
  if (!hints.image_height) hints.image_height = height;
  if (!hints.image_width) hints.image_width = width;
  return hints;
}

}  // namespace

void check_model_type(const Json& json, const std::string& file) {
  const JsonObject object(json, file);
  if (object.find("model_type") && !wraps_timm(object)) {
    check_hugging_face_type(object);
  } else if (wraps_timm(object) || object.find("architecture")) {
    check_timm_architecture(object);
  } else if (!object.find("vitrine")) {
    throw Error(
        ErrorCode::bad_file,
        file + ": found neither \"model_type\" nor \"architecture\" nor \"vitrine\", expected one of them");
  }
}

std::string_view said_family(const Json& json, const std::string& file) {
  const JsonObject object(json, file);
  return object.find("vitrine") || wraps_timm(object) ? std::string_view() : hugging_face_family(object);
}

bool holds_more_than_a_tower(const Json& json, const std::string& file) {
  const JsonObject object(json, file);
  return !object.find("vitrine") && !wraps_timm(object) && holds_more_than_a_tower(object);
}

ViTConfig read_config(const Json& json, const TensorShapes& tensors, const Naming& naming,
                      const std::string& file, const InferHints& hints, ConfigRemarks* remarks) {
  const JsonObject object(json, file);
  if (const Json* own = object.find("vitrine")) {
    ViTConfig config;
    read_own(*own, config, file);
    return config;
  }
  check_model_type(json, file);
  ConfigRemarks unread;
  ConfigRemarks& said = remarks ? *remarks : unread;
  if (!object.find("model_type") || wraps_timm(object)) return read_timm(object, naming, said);
  ViTConfig config = infer_config(tensors, naming, file, with_image(object, hints));
  read_hugging_face(object, naming, config, said);
  return config;
}

}  // namespace vitrine
