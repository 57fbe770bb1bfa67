#include "model/families/wrappers.h"

#include <algorithm>
#include <array>
#include <set>

namespace vitrine {
namespace {

// What Hugging Face's own classes put in front of a model, and the families' tables know.
constexpr std::array own_prefixes = std::to_array<std::string_view>(
    {"vit.", "deit.", "dinov2.", "dinov2_with_registers.", "beit.", "data2vec_vision.", "vision_model.",
     "audio_spectrogram_transformer.", "videomae.", "vivit.", "ijepa."});

// What they call the layers that they put behind it.
constexpr std::array heads = std::to_array<std::string_view>(
    {"classifier.", "cls_classifier.", "distillation_classifier.", "visual_projection."});

// What transformers 5 saves beside `landmark` under other names than its own modules have.
struct SavedNames {
  std::string_view landmark, saved, own;
};
constexpr std::array saved_names = std::to_array<SavedNames>(
    {{"vision_model.embeddings.class_embedding", "vision_model.encoder.layer.",
      "vision_model.encoder.layers."},                                        // AltCLIPModel
     {"vit.embeddings.cls_token", "encoder.layer.", "vit.encoder.layer."}});  // ViTMSNForImageClassification

// Calls them as the modules are called. Returns the new names with those in the file.
std::map<std::string, std::string> name_as_modules(TensorShapes& tensors) {
  std::map<std::string, std::string> saved_as;
  for (const SavedNames& names : saved_names) {
    for (const auto& [landmark, shape] : TensorShapes(tensors)) {
      if (!landmark.ends_with(names.landmark)) continue;
      const std::string outer = landmark.substr(0, landmark.size() - names.landmark.size());
      if (!outer.empty() && !outer.ends_with('.')) continue;
      const std::string saved = outer + std::string(names.saved);
      std::vector<std::string> found;
      for (auto at = tensors.lower_bound(saved); at != tensors.end() && at->first.starts_with(saved); ++at)
        found.push_back(at->first);
      for (const std::string& name : found) {
        const std::string own = outer + std::string(names.own) + name.substr(saved.size());
        if (!tensors.emplace(own, tensors.at(name)).second) continue;
        tensors.erase(name);
        saved_as.emplace(own, name);
      }
    }
  }
  return saved_as;
}

bool is_head(std::string_view name) {
  return std::ranges::any_of(heads, [&](std::string_view head) { return name.starts_with(head); });
}

// In front of models of this family, those that lie in nothing else have "".
std::set<std::string> outers_of(const TensorShapes& tensors, const Family& family) {
  std::set<std::string> outers;
  for (const auto& [name, shape] : tensors) {
    if (!name.ends_with(family.landmarks.front())) continue;
    const std::string prefix = name.substr(0, name.size() - family.landmarks.front().size());
    if (!has_landmarks(tensors, family, prefix) || (!prefix.empty() && !prefix.ends_with('.'))) continue;
    std::string outer = prefix;
    for (const std::string_view own : own_prefixes) {
      const size_t rest = prefix.size() - std::min(own.size(), prefix.size());
      if (prefix.ends_with(own) && (rest == 0 || prefix[rest - 1] == '.')) outer = prefix.substr(0, rest);
    }
    outers.insert(outer);
  }
  return outers;
}

}  // namespace

Unwrapped unwrap(TensorShapes tensors, const std::string& file) {
  std::map<std::string, std::string> saved_as = name_as_modules(tensors);
  std::set<std::string> outers;
  for (const Family* family : all_families()) outers.merge(outers_of(tensors, *family));
  if (outers.empty() || outers.contains(""))
    return {.tensors = std::move(tensors), .saved_as = std::move(saved_as)};
  if (outers.size() > 1) {
    std::string found;
    for (const std::string& outer : outers) found += (found.empty() ? "'" : ", '") + outer + "'";
    throw Error(ErrorCode::bad_file, file + ": found " + std::to_string(outers.size()) +
                                         " models in it, under " + found + ", expected one");
  }
  Unwrapped unwrapped{.outer = *outers.begin(), .saved_as = std::move(saved_as)};
  TensorShapes beside;
  for (auto& [name, shape] : tensors) {
    if (name.starts_with(unwrapped.outer)) {
      unwrapped.tensors.emplace(name.substr(unwrapped.outer.size()), std::move(shape));
    } else if (is_head(name)) {
      beside.emplace(name, std::move(shape));
    } else {
      unwrapped.passed_over.push_back(name);
    }
  }
  for (auto& [name, shape] : beside) {
    if (unwrapped.tensors.emplace(name, std::move(shape)).second) unwrapped.beside.insert(name);
  }
  return unwrapped;
}

std::string Unwrapped::name_in_file(const std::string& name) const {
  const std::string own = beside.contains(name) ? name : outer + name;
  const auto saved = saved_as.find(own);
  return saved == saved_as.end() ? own : saved->second;
}

}  // namespace vitrine
