// A published model's config.json as a ViTConfig.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "model/families.h"
#include "model/vit_config.h"

namespace vitrine {

// Reads Hugging Face's ("model_type": "vit" or "deit"), timm's ("architecture": ...) or this project's
// own ("vitrine": {field: value, ...}). Fields that the file leaves out take that family's defaults;
// what only the tensors can tell (whether there is a head, which positions) comes from them. Throws
// Error(bad_file) that names `file`.
ViTConfig read_config(const nlohmann::json& json, const TensorShapes& tensors, const Naming& naming,
                      const std::string& file, const InferHints& hints = {});

// Throws Error(bad_file) when the file says that it describes a model of a kind that isn't read.
void check_model_type(const nlohmann::json& json, const std::string& file);

}  // namespace vitrine
