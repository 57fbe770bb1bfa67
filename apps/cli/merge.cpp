// vitrine merge: an adapter and its base as one ordinary model.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/model_options.h"
#include "model/files/parameter_values.h"
#include "runtime/util/atomic_folder.h"
#include "runtime/util/error.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"
#include "train/run/model_files.h"
#include "train/run/run_folder.h"

namespace vitrine::cli {
namespace {

struct MergeFlags {
  ModelFlags model;
  std::string out;
  bool json = false;
};

void merge(const MergeFlags& flags, const CommonOptions& common) {
  const Model model = open_model(flags.model, common);
  if (model.adapter_base.empty()) {
    throw Error(ErrorCode::usage, "--model: " + shown(flags.model.model) +
                                      " is a model already, expected the folder of an adapter, with "
                                      "adapter_config.json and adapter_model.safetensors");
  }
  if (!model.preprocess_error.empty()) throw Error(ErrorCode::bad_file, model.preprocess_error);
  std::vector<std::string> names;
  if (!model.labels.empty()) {
    for (uint64_t i = 0; i < model.config.classes; ++i) names.push_back(model.labels[i]);
  }
  const std::filesystem::path out = flags.out, base = model.adapter_base;
  for (const std::filesystem::path& merged : {model.path, base, model.path / base}) {
    std::error_code none;
    if (std::filesystem::equivalent(merged, out, none)) {
      throw Error(
          ErrorCode::usage,
          "--out: " + shown(out) + " is what is merged and would be overwritten, expected another folder");
    }
  }
  if (out.has_parent_path()) make_folders(out.parent_path());
  AtomicFolder folder(out, model_file_names());
  write_model_settings(folder.path(), model.config, model.preprocess, names);
  write_weights(folder.path(), model.config, [&](const Parameter& parameter) {
    std::vector<float> values(parameter.shape.elements());
    read_floats(*model.constants, parameter, values);
    return values;
  });
  folder.commit();
  if (flags.json) {
    const nlohmann::ordered_json line{
        {"output", flags.out}, {"adapter", flags.model.model}, {"base", model.adapter_base}};
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s: %s merged into %s\n", shown(out).c_str(), shown(flags.model.model).c_str(),
              shown(model.adapter_base).c_str());
}

}  // namespace

void add_merge(CLI::App& app, const CommonOptions& common) {
  CLI::App* command = app.add_subcommand("merge", "An adapter (LoRA) and its base as one ordinary model");
  auto flags = std::make_shared<MergeFlags>();
  command
      ->add_option("--model", flags->model.model,
                   "The adapter: the folder of a training with LoRA, or one that PEFT wrote")
      ->required();
  command->add_option("--out", flags->out, "Folder for the model")->required();
  command->add_flag("--json", flags->json, "Say what was written as a JSON object");
  command->callback([&common, flags] { merge(*flags, common); });
}

}  // namespace vitrine::cli
