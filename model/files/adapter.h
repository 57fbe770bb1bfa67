// Adapters as PEFT stores them (LoRA): a folder with adapter_config.json and adapter_model.safetensors, which
// hold what was trained beside a base model. Layers are called what the base's own library calls its modules.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/families.h"
#include "model/files/weights.h"

namespace vitrine {

inline constexpr std::string_view adapter_config_name = "adapter_config.json",
                                  adapter_weights_name = "adapter_model.safetensors";
// In front of every tensor's name.
inline constexpr std::string_view adapter_prefix = "base_model.model.";
// The key of the tensors' metadata with base_checksum().
inline constexpr std::string_view base_checksum_key = "vitrine_base_checksum";

// A linear layer of a block as its library has it: a whole one of this model's, or one of those that are
// fused in it here.
struct LibraryLayer {
  Parameter weight;                  // of the layer here
  uint64_t first_row = 0, rows = 0;  // of it
  std::string here;                  // "blocks.0.attn.qkv", or "blocks.0.attn.q" of a part
  std::string name;                  // "vit.layers.0.attention.q_proj", as PEFT has it
  std::vector<std::string> others;   // what else it may be called: by checkpoints, and older libraries

  uint64_t inputs() const { return weight.shape[1]; }
  bool is_called(std::string_view called) const;
};

// All that pairs may lie beside, in the order of the blocks. Throws Error(code) beginning with `origin` for a
// family whose layers PEFT can't reach: MyViT, and torchvision's attention.
std::vector<LibraryLayer> library_layers(const ViTConfig& config, const Naming& naming);

// What the library calls the module of the head ("head", "classifier").
std::string library_head(Module module, const ViTConfig& config, const Naming& naming);

// Tells bases apart: of the weights that pairs lie beside, as the source has them.
uint64_t base_checksum(ConstantSource& base, const std::vector<LibraryLayer>& layers);

bool is_adapter(const std::filesystem::path& folder);

// The base that the folder's adapter_config.json names, with the adapter merged into it: W + scale * B A.
// Throws Error(bad_file) naming what of it can't be followed.
Model open_adapter(const ModelOptions& options, const std::filesystem::path& folder, const Warn& warn);

}  // namespace vitrine
