// Architectures by name: timm's, torchvision's, and those of the documents that this project grew from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/vit/vit_config.h"

namespace vitrine {

// Nothing when no architecture has this name. A timm weight tag ("vit_tiny_patch16_224.augreg_in21k")
// is not looked at.
std::optional<ViTConfig> find_preset(std::string_view name);
// Throws Error(usage) for a name that isn't known.
ViTConfig preset(std::string_view name);
std::vector<std::string_view> preset_names();

}  // namespace vitrine
