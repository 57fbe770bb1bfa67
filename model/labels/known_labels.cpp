#include "model/labels/known_labels.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace vitrine {
namespace {

using Json = nlohmann::json;

const Json* find(const Json* json, const char* key) {
  if (!json || !json->is_object()) return nullptr;
  const auto found = json->find(key);
  return found == json->end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const Json* value) {
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

// "in1k", "in22k", "inw21k".
bool is_subset(std::string_view part) {
  if (!part.starts_with("in") || !part.ends_with("k")) return false;
  part = part.substr(2, part.size() - 3);
  if (part.starts_with("w")) part.remove_prefix(1);
  return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
}

// The last part of timm's tag that names a subset of ImageNet, "in12k": what the classes are of. Empty where
// there is none.
std::string subset_of(std::string_view tag) {
  std::string subset;
  while (!tag.empty()) {
    const size_t end = std::min(tag.find_first_of("_."), tag.size());
    if (const std::string_view part = tag.substr(0, end); is_subset(part)) subset = part;
    tag.remove_prefix(std::min(end + 1, tag.size()));
  }
  return subset;
}

// Whose names aren't ImageNet's for all that is known: Vitrine's own, transformers' other families, and those
// with names under timm's old key.
bool is_no_library_model(const Json* config) {
  const std::string type = text_of(find(config, "model_type"));
  return find(config, "vitrine") || (!type.empty() && type != "timm_wrapper") || find(config, "labels") ||
         find(find(config, "pretrained_cfg"), "labels");
}

}  // namespace

std::vector<std::string> KnownLabels::names() const {
  return set ? imagenet::class_names(*set) : std::vector<std::string>();
}

std::string KnownLabels::remark() const {
  if (!set || !assumed) return {};
  return "the class names are those of " + std::string(set->title) + ", because the model has " +
         std::to_string(set->classes) + " classes and its files name none";
}

KnownLabels known_labels(const Json* config, std::string_view family, uint64_t classes) {
  if (!family.starts_with("timm") && family != "torchvision") return {};
  const imagenet::Set* set = imagenet::set_of(classes);
  if (!set || is_no_library_model(config)) return {};
  const Json* pretrained = find(config, "pretrained_cfg");
  if (const Json* count = find(pretrained, "num_classes"); count && *count != classes) return {};
  std::string tag = text_of(find(pretrained, "tag"));
  if (tag.empty()) tag = text_of(find(config, "architecture"));
  const std::string subset = subset_of(tag);
  if (!subset.empty() && subset != set->tag) return {};
  return {set, subset.empty()};
}

}  // namespace vitrine
