// A published model's config.json as a ViTConfig.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/families/families.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// What a config leaves open or asks for in vain, a sentence each that names the file.
struct ConfigRemarks {
  std::vector<std::string> assumed;    // of what is computed
  std::vector<std::string> untrained;  // of training alone, which goes on without it
};

// Reads Hugging Face's ("model_type": "vit" or "deit"), timm's ("architecture": ...) or this project's
// own ("vitrine": {field: value, ...}). Fields that the file leaves out take that family's defaults;
// what only the tensors can tell Hugging Face's (whether there is a head, which positions) comes from
// them. Throws Error(bad_file) that names `file`.
ViTConfig read_config(const nlohmann::json& json, const TensorShapes& tensors, const Naming& naming,
                      const std::string& file, const InferHints& hints = {},
                      ConfigRemarks* remarks = nullptr);

// The family that it says the tensors are named as; nothing where that isn't said.
std::string_view said_family(const nlohmann::json& json, const std::string& file);

// Whether it is of a model that does more than its tower, whose other tensors are no concern of that.
bool holds_more_than_a_tower(const nlohmann::json& json, const std::string& file);

// Throws Error(bad_file) when the file says that it describes a model of a kind that isn't read, by its name.
void check_model_type(const nlohmann::json& json, const std::string& file);

}  // namespace vitrine
