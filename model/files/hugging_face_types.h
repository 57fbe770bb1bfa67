// The "model_type"s of Hugging Face's transformers that are read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/files/json_object.h"
#include "model/vit/vit_config.h"

namespace vitrine {

struct TypeSizes {
  uint64_t dim = 768, depth = 12, heads = 12, mlp_hidden = 3072, image_size = 224;
};

// A "model_type" and the defaults in which the configuration classes differ.
struct HuggingFaceType {
  std::string_view name;
  std::string_view family;  // how its tensors are named
  uint64_t patch_size;
  Activation activation;
  double eps;
  TypeSizes sizes = {};
};

std::span<const HuggingFaceType> known_types();
// Nothing where it is none of them.
const HuggingFaceType* known_type(const nlohmann::json* name);

// The configuration of the tower in a model that talks of pictures, or does something else behind it, where
// it is one that is read.
std::optional<JsonObject> tower_of(const JsonObject& object);

// The class that was saved, where that is said.
std::string saved_class(const JsonObject& object);

}  // namespace vitrine
