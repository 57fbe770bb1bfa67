// The text towers of CLIP, SigLIP and SigLIP 2: a transformer over tokens that gives one vector a text, to be
// compared with the vector of a picture.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "model/files/weights.h"
#include "model/text/tokenizer.h"
#include "model/vit/block.h"

namespace vitrine {

struct TextConfig {
  TextKind kind = TextKind::clip;
  bool lower = false;  // texts, whatever the tokenizer's files say: SigLIP 2's with pictures of any shape
  ViTConfig blocks;    // what concerns them: dim, depth, heads, mlp_hidden, activation, eps, causal
  uint64_t vocabulary = 0;
  uint64_t length = 0;  // tokens of a text
  uint64_t width = 0;   // of the vector
  // The token whose place the vector is taken from; 2: the largest token's, as CLIP's published files mean
  // it.
  uint32_t end_of_text = 0;
};

// Blocks, norm and projection; what tokens and positions are is looked up by the host.
class TextTower : public ModuleBase {
 public:
  explicit TextTower(const TextConfig& config);
  // tokens [B, length, dim] f32 and of each text the row of all B * length [B] u32 that its vector is made
  // of, to [B, width] f32.
  ValueId operator()(GraphBuilder& builder, ValueId tokens, ValueId rows) const;

 private:
  uint64_t width_ = 0;
  bool bias_ = false;
  std::vector<Block> blocks_;
};

struct TextModel {
  TextConfig config;
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const TensorFiles> files;
  std::unique_ptr<ConstantSource> constants;  // of the tower
  StoredTensor tokens, positions;             // [vocabulary, dim] and [length, dim]
  // Of a picture's and a text's vectors, both of length 1: logit = exp(log_scale) * dot product + bias. Of
  // each picture CLIP takes the softmax over the texts, SigLIP the sigmoid of each.
  double log_scale = 0, bias = 0;

  // In f64, from a picture's vector (of any length; of none it is like nothing) to what the model says of
  // each of `texts` vectors of length 1.
  std::vector<float> logits(std::span<const float> picture, std::span<const float> texts) const;
  std::vector<float> probabilities(std::span<const float> logits) const;
};

// Whether there are texts to be compared with what the model makes of pictures: a CLIP or SigLIP with both
// towers. Its tokenizer may still turn out to be one that isn't read.
bool has_text_tower(const Model& model);

// From a folder with config.json, the weights and a tokenizer, or the name of one in Hugging Face's cache.
// Throws Error(bad_file) for anything else than transformers' CLIP, SigLIP or SigLIP 2, by name.
TextModel open_text_model(const std::filesystem::path& model, Warn warn = {});
// The one beside the tower that pictures go through. Error(bad_file) where their vectors are of other widths.
TextModel open_text_model_of(const Model& model, Warn warn = {});

// Divides by the length, in f64; zeros stay.
void normalize(std::span<float> vector);
// Of rows of any length, each as wide as the vector, with that vector of length 1; a row of zeros is like
// nothing: 0.
std::vector<float> cosines(std::span<const float> rows, std::span<const float> vector);

}  // namespace vitrine
