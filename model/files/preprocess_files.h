// Which preprocessing a published model wants, from the files beside it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "model/pictures/preprocess.h"
#include "model/vit/vit_config.h"

namespace vitrine {

// transformers' preprocessor_config.json, as the processor that works on Pillow's pictures reads it.
// `model_type` stands in where the file doesn't name its class. Throws Error(bad_file) naming `file`.
Preprocess read_hugging_face_preprocess(const nlohmann::json& json, std::string_view model_type,
                                        const std::string& file);

// A preprocessor_config.json with the fields of the class of transformers that comes nearest, so that it does
// the same where it can. What it can't say (rounding of sides and crops, a fill, numbers of this library) is
// in an object "vitrine" beside them. read_hugging_face_preprocess() gives an equal Preprocess back.
nlohmann::ordered_json hugging_face_json(const Preprocess& preprocess);

// All fields, and what to_json() wrote of them. Fields that are left out keep what `base` has. Throws
// Error(bad_file) naming the file.
nlohmann::ordered_json to_json(const Preprocess& preprocess);
Preprocess preprocess_of(const nlohmann::json& json, Preprocess base, const std::string& file);

// timm's config.json: its pretrained_cfg, or in files of old releases the top level. Where it names no
// input_size, the model's is taken.
Preprocess read_timm_preprocess(const nlohmann::json& json, const ViTConfig& config, const std::string& file);

// What the model at `path` (a folder or a .safetensors file) wants: from preprocessor_config.json, else the
// "image_processor" of processor_config.json, else config.json, else the profile that its family's library has for most models of this size. `family` is
// Model::family.
Preprocess read_preprocess(const std::filesystem::path& path, std::string_view family,
                           const ViTConfig& config);

}  // namespace vitrine
