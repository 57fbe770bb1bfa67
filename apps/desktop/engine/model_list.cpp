#include "apps/desktop/engine/model_list.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "model/families/known_architectures.h"
#include "model/files/config_json.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> presets{{
    {"vit_tiny_patch16_224", "ViT-Ti/16"},
    {"vit_small_patch16_224", "ViT-S/16"},
    {"vit_base_patch16_224", "ViT-B/16"},
    {"deit_base_distilled_patch16_224", "DeiT-B/16 distilled"},
    {"vit_small_patch14_dinov2", "DINOv2 ViT-S/14"},
    {"vit_base_patch16_siglip_224", "SigLIP ViT-B/16"},
    {"cifar_vit", "ViT for CIFAR-10"},
}};

ModelChoice preset_choice(const std::string& name, const std::string& title) {
  return {ModelSource::random, name, title + ", random weights", {.arch = name}};
}

// Whether a folder looks like a Vision Transformer that is read; opening it says for certain.
bool is_readable(const fs::path& folder) {
  std::error_code ignored;
  const bool weights = fs::exists(folder / "model.safetensors", ignored) ||
                       fs::exists(folder / "model.safetensors.index.json", ignored);
  if (!weights) return false;
  try {
    const fs::path config = folder / "config.json";
    const nlohmann::json json = read_json(config);
    check_model_type(json, shown(config));
    return true;
  } catch (const Error&) {
    return false;  // another kind of model: caches are full of them
  }
}

std::vector<ModelChoice> hub_models(const Environment& environment) {
  std::vector<ModelChoice> models;
  for (const std::string& name : names_in_hub_cache(environment)) {
    if (is_readable(find_in_hub_cache(name, {}, environment)))
      models.push_back({ModelSource::hub, name, name, {.model = name}});
  }
  return models;
}

}  // namespace

std::optional<fs::path> find_asset(std::string_view name, const fs::path& executable_folder) {
  // An archive that was unpacked anywhere, an installation that was moved, the one that was configured, and
  // who builds it.
  const std::array<fs::path, 6> folders{executable_folder / "assets",
                                        executable_folder,
                                        executable_folder / ".." / "share" / "vitrine",
                                        VITRINE_SHARE_FOLDER,
                                        fs::path(VITRINE_SOURCE_FOLDER) / "assets",
                                        VITRINE_SOURCE_FOLDER};
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (fs::is_directory(folder / name, ignored)) return (folder / name).lexically_normal();
  }
  return std::nullopt;
}

std::optional<fs::path> find_asset(std::string_view name) {
  return find_asset(name, system::program().parent_path());
}

std::optional<fs::path> shipped_digit_model() { return find_asset("digits"); }

std::vector<ModelChoice> list_models(const Environment& environment) {
  std::vector<ModelChoice> models;
  if (const auto digits = shipped_digit_model())
    models.push_back({ModelSource::shipped, "digits", "Handwritten digits", {.model = *digits}});
  std::ranges::move(hub_models(environment), std::back_inserter(models));
  for (const auto& [name, title] : presets)
    models.push_back(preset_choice(std::string(name), std::string(title)));
  return models;
}

ModelChoice model_choice(std::span<const ModelChoice> models, const std::string& name) {
  if (name.empty() && !models.empty()) return models.front();
  const auto known = std::ranges::find(models, name, &ModelChoice::name);
  if (known != models.end()) return *known;
  std::error_code ignored;
  if (fs::exists(name, ignored)) {
    const fs::path path = fs::path(name).lexically_normal();
    const fs::path last = path.has_filename() ? path.filename() : path.parent_path().filename();
    return {ModelSource::file, name, shown(last.empty() ? path : last), {.model = name}};
  }
  if (find_architecture(name)) return preset_choice(name, name);
  if (is_hub_name(name)) return {ModelSource::hub, name, name, {.model = name}};
  throw Error(ErrorCode::usage, in_quotes(name) +
                                    ": found no model, file or folder and no architecture of this name, "
                                    "expected one of them");
}

}  // namespace vitrine::desktop
