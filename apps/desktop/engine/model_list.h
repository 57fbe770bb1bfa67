// Models to choose from, found without opening any.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/files/hub_cache.h"
#include "model/files/weights.h"

namespace vitrine::desktop {

enum class ModelSource : uint8_t {
  shipped,  // with Vitrine
  hub,      // in Hugging Face's cache
  file,     // opened by its path
  random,   // an architecture whose weights mean nothing
};

struct ModelChoice {
  ModelSource source = ModelSource::random;
  std::string name;  // what a script says, and what finds it: "digits", "google/vit-base-patch16-224", a path
  std::string title;  // what is shown: "Handwritten digits", "ViT-B/16, random weights"
  ModelOptions options = {};
};

// A folder that comes with Vitrine, such as "digits" or "samples": beside the executable, where it was
// installed, or in the source tree. Nothing where none is there.
std::optional<std::filesystem::path> find_asset(std::string_view name);
// The same, for an executable in this folder.
std::optional<std::filesystem::path> find_asset(std::string_view name,
                                                const std::filesystem::path& executable_folder);
std::optional<std::filesystem::path> shipped_digit_model();

// The digits first, then those in Hugging Face's cache that are of a kind that is read, then some
// architectures with random weights.
std::vector<ModelChoice> list_models(const Environment& environment = process_variable);

// The one of this name; else what is at this path, or the architecture of this name. An empty name is the
// first of the list. Throws Error(usage) where it is none of these.
ModelChoice model_choice(std::span<const ModelChoice> models, const std::string& name_or_path);

}  // namespace vitrine::desktop
