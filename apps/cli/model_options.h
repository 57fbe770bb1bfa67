// Which model a command works on, and how; the options that run, inspect and bench share.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/common_options.h"
#include "model/files/weights.h"
#include "model/run/runner.h"
#include "model/run/storage_type.h"
#include "runtime/util/npy.h"
#include "runtime/vk/device.h"

namespace vitrine::cli {

struct ModelFlags {
  std::string model, arch, what, variants, fusions = "all", layouts = "kernels", image_size;
  std::vector<std::string> set;
  bool untuned = false;
};

// Declares --model and --arch.
void add_source_flags(CLI::App& command, ModelFlags& flags);
// Declares these and those of add_plan_flags.
void add_model_flags(CLI::App& command, ModelFlags& flags);
// Declares --set and --image-size.
void add_config_flags(CLI::App& command, ModelFlags& flags);
// Declares those, --variant, --untuned, --fuse and --layouts.
void add_plan_flags(CLI::App& command, ModelFlags& flags);
// Declares --layouts.
void add_layouts_flag(CLI::App& command, std::string& layouts);
// Declares --batch and --dtype for commands that go through every combination of several.
void add_combination_flags(CLI::App& command, std::vector<uint64_t>& batches,
                           std::vector<std::string>& dtypes);
// Declares --what.
void add_what_flag(CLI::App& command, ModelFlags& flags);

// "224", or "224x320" with the height first; {0, 0} for an empty text. `option` is for messages.
std::pair<uint64_t, uint64_t> image_size_of(const char* option, const std::string& text);

// One line on stderr.
void warn(const std::string& sentence);

// Throws Error(bad_file) unless the file holds float32 images of the model's size.
void require_images(const NpyFile& file, const ViTConfig& config);

ModelOptions model_options_of(const ModelFlags& flags, const CommonOptions& common);
// One line on stderr where --arch is given, and on a terminal how far they are, while they are made.
void announce_random_weights(Model& model, const ModelFlags& flags, const CommonOptions& common);
// Warnings of the model go to stderr. Random weights are announced there too.
Model open_model(const ModelFlags& flags, const CommonOptions& common);

// The images of such a file.
std::vector<float> read_images(const std::string& path, const ViTConfig& config);

// --what as a result, or nothing when it was left out.
std::optional<Result> result_of(const ModelFlags& flags);

// --variant, else the variable VITRINE_VARIANT, else nothing forced; --untuned, --fuse and --layouts.
PlanOptions plan_options(const ModelFlags& flags);

}  // namespace vitrine::cli
