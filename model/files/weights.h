// A model to be run: its configuration, and where its constants come from (a checkpoint, or a seed).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/families/families.h"
#include "model/files/labels.h"
#include "model/files/tensor_files.h"
#include "model/labels/known_labels.h"
#include "model/pictures/preprocess.h"
#include "model/vit/modules.h"
#include "model/vit/position_table.h"
#include "model/vit/vit_config.h"
#include "runtime/graph/constants.h"

namespace vitrine {

struct ModelOptions {
  // A folder with model.safetensors (or its index) and config.json, one .safetensors file, the folder of a
  // training, whose best/ is taken where it was validated, or the name of a model in Hugging Face's cache.
  // An adapter's folder (adapter.h) is merged into its base.
  // Empty: `arch` names a preset, whose weights are random.
  std::filesystem::path model;
  std::string arch;
  uint64_t seed = 0;
  std::vector<std::string> set;  // "KEY=VALUE" overrides of the configuration
  // The images that will come, where they aren't of the size that the model was published for: a learned
  // position table is resampled. 0: as published.
  uint64_t image_height = 0, image_width = 0;
  // Names the preprocessing (profile_named(), or fast_profile), instead of what the model's files ask for.
  std::string profile;
  bool is_base = false;  // of an adapter: then no adapter itself
};

struct Model {
  std::string name;    // the architecture, or the path as it was given
  std::string family;  // whose names the checkpoint's tensors have; "random" for seeded weights
  ViTConfig config;    // valid
  std::unique_ptr<ConstantSource> constants;
  // The grid that learned positions were stored for. They are resampled where the config's is another.
  std::optional<Grid> stored_grid = std::nullopt;
  Labels labels = {};  // as its files have them
  // What its answers are called where those say nothing: for who reads them (answer_labels()), while training
  // and evaluation go by what is written.
  KnownLabels known_labels = {};
  // Where the checkpoint lies, after a name was looked up in Hugging Face's cache; empty for random weights.
  std::filesystem::path path = {};
  // What its files ask of training and isn't done, a sentence each.
  std::vector<std::string> untrained = {};
  // How pictures become what the model takes: of the config's size.
  Preprocess preprocess = {};
  // Why its files' preprocessing can't be followed: a sentence. Then `preprocess` says nothing, and the model
  // takes numbers alone. See require_pictures() in model_pictures.h.
  std::string preprocess_error = {};
  // Whose names its checkpoint's tensors have, and what stands in front of them; none for random weights, and
  // for a model that an adapter was merged into.
  Naming naming = {};
  // Of a model that an adapter was merged into: what the folder calls its base.
  std::string adapter_base = {};
};

// Called with one sentence about something that is odd but no reason to stop.
using Warn = std::function<void(const std::string&)>;

// Where a model lies that ModelOptions::model names: the path itself, its best/, or a folder in Hugging
// Face's cache, about whose choice `warn` is told.
std::filesystem::path find_checkpoint(const std::filesystem::path& model, const Warn& warn = {});

// Which size of images it takes is decided here: the options' where they name one, else what its
// preprocessing makes of pictures, as published models may be shown pictures of another size than they were
// trained with. Throws Error(bad_file) when the configuration or any tensor is not as it must be: every
// tensor is looked at before anything is loaded. A NaN in a tensor is a warning, given when it is loaded.
Model open_model(const ModelOptions& options, Warn warn = {});

// What to call the model's answers, with a word about names that are assumed.
Labels answer_labels(const Model& model, const Warn& warn);

// A module's parameters, drawn from a seed as init_parameter() says.
std::unique_ptr<ConstantSource> random_weights(const ModuleBase& module, uint64_t seed);
std::unique_ptr<ConstantSource> random_weights(const ViTConfig& config, uint64_t seed);

// A module's parameters from where each is found in the files (families.h), which must have been checked.
std::unique_ptr<ConstantSource> part_weights(std::shared_ptr<const TensorFiles> files,
                                             const ModuleBase& module,
                                             const std::map<std::string, std::vector<FilePart>>& parts,
                                             Warn warn = {});

// A module's parameters from a .safetensors file (or an index, or a folder) that names them as PyTorch's
// modules and timm do, with `prefix` in front of the module's own names: "blocks.3." finds a Block's in a
// whole model. Other tensors of the file are left alone. Throws Error(bad_file) for one that is missing or
// of the wrong shape.
std::unique_ptr<ConstantSource> file_weights(const ModuleBase& module, const std::filesystem::path& path,
                                             const std::string& prefix = {}, Warn warn = {});

}  // namespace vitrine
