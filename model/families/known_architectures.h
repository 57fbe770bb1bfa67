// What published models have that their tensors' names and shapes don't tell, and what is to be done where
// nothing else tells it: models without a config.json.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/families.h"

namespace vitrine {

struct KnownArchitecture {
  std::string_view family;
  std::string_view name;
  std::string_view key;  // what names and shapes tell, as architecture_key() writes it
  uint64_t heads;
  Activation activation;
  double eps;
  std::string_view set;    // other fields that names don't tell, as "rotary=halves rotary_base=100"
  std::string_view lacks;  // what Vitrine can't compute of it, with its verb; empty where it computes all
};

// Of libraries whose checkpoints come without a configuration, too.
std::span<const KnownArchitecture> known_architectures();

// What names and shapes tell of a model, but for its image's size and its classes.
std::string architecture_key(const ViTConfig& config);

// The architecture itself, for images of 224 and 1000 classes.
ViTConfig config_of(const KnownArchitecture& known);

// Every architecture that is computed, by name: the presets, and the table's others for images of 224.
// Nothing for other names; a timm weight tag is not looked at.
std::optional<ViTConfig> find_architecture(std::string_view name);
// Throws Error(usage) that names the closest known names.
ViTConfig architecture(std::string_view name);
std::vector<std::string_view> architecture_names();

// Takes what names and shapes don't tell from the published models that they are those of. Where these differ
// in it, throws Error(bad_file) that asks, unless `hints` say it; likewise where such a model can't be
// computed. Where there are none, what is assumed is added to `assumed`, in a sentence that names the file.
void fill_unseen(ViTConfig& config, const Naming& naming, const InferHints& hints, const std::string& file,
                 std::vector<std::string>& assumed);

}  // namespace vitrine
