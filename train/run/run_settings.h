// The settings, training.json, that lie beside a training's checkpoint.
#pragma once

#include <filesystem>
#include <string>

#include "train/train_config.h"

namespace vitrine {

std::string settings_text(const TrainConfig& config);
// Whether this is all that is in a file.
bool holds_text(const std::filesystem::path& file, const std::string& text);

// Throws Error(usage) where settings that aren't this configuration's lie in `out` without a checkpoint: of
// that name may be a file that somebody has written.
void require_no_other_settings(const TrainConfig& config, const std::filesystem::path& out);

}  // namespace vitrine
