// vitrine models: what kinds of models run, and which of those that Hugging Face's tools have downloaded do.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "model/families/families.h"
#include "model/families/foreign.h"
#include "model/families/known_architectures.h"
#include "model/files/config_hugging_face.h"
#include "model/files/hub_cache.h"
#include "model/files/weights.h"
#include "model/vit/presets.h"
#include "runtime/util/text.h"

namespace vitrine::cli {
namespace {

// A model of the cache: what it is, or why it doesn't run.
struct Cached {
  std::string name;
  std::optional<Model> model = {};
  std::string refusal = {};
  std::vector<std::string> warnings = {};
};

Cached look_at(const std::string& name) {
  Cached cached{name};
  try {
    cached.model =
        open_model({.model = name}, [&](const std::string& warning) { cached.warnings.push_back(warning); });
  } catch (const Error& error) {
    cached.refusal = error.what();
  }
  return cached;
}

std::string summary_of(const ViTConfig& c) {
  std::string text = std::to_string(c.depth) + " blocks of " + std::to_string(c.dim) + ", " +
                     std::to_string(c.heads) + " heads, " + std::to_string(c.image_height) + "x" +
                     std::to_string(c.image_width) + " in patches of " + std::to_string(c.patch_height) +
                     "x" + std::to_string(c.patch_width);
  return c.classes ? text + ", " + std::to_string(c.classes) + " classes" : text;
}

// "clip, clip_vision_model", of Hugging Face's families.
std::string types_of(const Family& family) {
  std::string text;
  for (const std::string_view type : hugging_face_types(family.name))
    text += (text.empty() ? "" : ", ") + std::string(type);
  return text;
}

void print(const nlohmann::ordered_json& line) {
  std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void print_json(bool all) {
  for (const Family* family : all_families())
    print({{"family", family->name},
           {"title", family->title},
           {"told_by", family->landmarks},
           {"model_types", hugging_face_types(family->name)}});
  for (const ForeignKind& kind : foreign_kinds()) print({{"unsupported", kind.what}, {"lacks", kind.lacks}});
  if (all) {
    for (const std::string_view name : architecture_names())
      print({{"architecture", name}, {"parameters", parameter_count(*find_architecture(name))}});
    for (const KnownArchitecture& known : known_architectures()) {
      if (!known.lacks.empty())
        print(
            {{"architecture", known.name}, {"unsupported", std::string(known.lacks) + " not supported yet"}});
    }
  }
  for (const std::string& name : names_in_hub_cache()) {
    const Cached cached = look_at(name);
    nlohmann::ordered_json line{{"cached", name}, {"runs", cached.model.has_value()}};
    if (cached.model) {
      line["family"] = cached.model->family;
      line["summary"] = summary_of(cached.model->config);
      line["warnings"] = cached.warnings;
    } else {
      line["refusal"] = cached.refusal;
    }
    print(line);
  }
}

void print_text(bool all) {
  std::printf("Run, by the names of their tensors:\n");
  for (const Family* family : all_families()) {
    const std::string types = types_of(*family);
    std::printf("  %s%s\n", std::string(family->title).c_str(), types.empty() ? "" : (": " + types).c_str());
  }
  std::printf("\nKnown, and refused:\n");
  for (const ForeignKind& kind : foreign_kinds())
    std::printf("  %s: %s not supported yet\n", std::string(kind.what).c_str(),
                std::string(kind.lacks).c_str());
  const std::vector<std::string_view> names = architecture_names();
  if (all) {
    std::printf("\nArchitectures for --arch, with random weights, and how many parameters they have:\n");
    for (const std::string_view name : names)
      std::printf("  %-44s %8.1f M\n", std::string(name).c_str(),
                  static_cast<double>(parameter_count(*find_architecture(name))) / 1e6);
  } else {
    std::printf("\n%zu architectures by name (--all lists them)\n", names.size());
  }
  const std::vector<std::string> cached_names = names_in_hub_cache();
  std::printf("\nIn Hugging Face's cache, %s: %s\n", shown(hub_cache_folder()).c_str(),
              cached_names.empty() ? "nothing" : (std::to_string(cached_names.size()) + " models").c_str());
  for (const std::string& name : cached_names) {
    const Cached cached = look_at(name);
    if (cached.model) {
      std::printf("  + %s: %s, %s\n", name.c_str(),
                  std::string(family_named(cached.model->family).title).c_str(),
                  summary_of(cached.model->config).c_str());
    } else {
      std::printf("  - %s: %s\n", name.c_str(), cached.refusal.c_str());
    }
    for (const std::string& warning : cached.warnings) std::printf("    %s\n", warning.c_str());
  }
}

}  // namespace

void add_models(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("models", "List the models that run, and which of the downloaded ones do");
  auto all = std::make_shared<bool>(false), json = std::make_shared<bool>(false);
  command->add_flag("--all", *all, "Also every architecture that has a name");
  command->add_flag("--json", *json, "One JSON object a line");
  command->callback([all, json] { *json ? print_json(*all) : print_text(*all); });
}

}  // namespace vitrine::cli
