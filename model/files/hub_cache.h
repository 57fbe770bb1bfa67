// Models that Hugging Face's tools have already downloaded, found by name. Nothing is downloaded here.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine {

// Gives the value of an environment variable, or null.
using Environment = std::function<const char*(const char*)>;
const char* process_variable(const char* name);

// The folder that huggingface_hub keeps its repositories in: HF_HUB_CACHE, else HF_HOME/hub, else
// huggingface/hub in XDG_CACHE_HOME or ~/.cache.
std::filesystem::path hub_cache_folder(const Environment& environment = process_variable);

// Whether the text can be the name of a model on the hub: "google/vit-base-patch16-224".
bool is_hub_name(std::string_view text);

// The folder of the named model's files: the revision that refs/main names, else the newest there is,
// which `warn` is told. Error(bad_file) that says where was looked and how to get the model.
std::filesystem::path find_in_hub_cache(const std::string& name,
                                        const std::function<void(const std::string&)>& warn = {},
                                        const Environment& environment = process_variable);

// All models that find_in_hub_cache() finds, by name, sorted; whatever they are.
std::vector<std::string> names_in_hub_cache(const Environment& environment = process_variable);

}  // namespace vitrine
