// A model's folder, as open_model() reads it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "model/pictures/preprocess.h"
#include "model/vit/parameters.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// config.json, with the class names where there is one a class, and preprocessor_config.json.
void write_model_settings(const std::filesystem::path& folder, const ViTConfig& config,
                          const Preprocess& preprocess, const std::vector<std::string>& class_names);

// model.safetensors with every learned parameter, as F32 and by Vitrine's names, which are timm's.
void write_weights(const std::filesystem::path& folder, const ViTConfig& config,
                   const std::function<std::vector<float>(const Parameter&)>& values_of);

}  // namespace vitrine
