#include "model/families/foreign.h"

#include <algorithm>

namespace vitrine {
namespace {

// A tensor whose name ends so, behind a dot or from its beginning; that ends in a dot: whose name has it
// there. Behind a !: that no tensor is. A rank, where it is that which tells.
struct Sign {
  std::string_view name;
  size_t rank = 0;
};
using Signs = std::vector<Sign>;

struct Foreign {
  std::string_view what;
  std::string_view lacks;                    // with its verb
  std::vector<Signs> signs;                  // one suffices, all of it
  std::vector<std::string_view> types = {};  // Hugging Face's
};

// The first that fits, so that the more particular ones come first.
const std::vector<Foreign>& kinds() {
  constexpr std::string_view another_vit = "a Vision Transformer that isn't plain";
  static const std::vector<Foreign> table{
      {"a Swin Transformer",
       "stages of windows are",
       {{{"layers.0.blocks.0.attn.relative_position_bias_table"}},
        {{"layers.0.blocks.0.attention.self.relative_position_bias_table"}},
        {{"layers.0.blocks.0.attention.relative_position_bias_table"}},
        {{"layers.0.blocks.0.attn.logit_scale"}},
        {{"features.1.0.attn.relative_position_bias_table"}}},
       {"swin", "swinv2"}},
      {"a model of videos",
       "frames of a video are",
       {{{"patch_embeddings.proj.weight", 5}}, {{"patch_embed.proj.weight", 5}}},
       {"timesformer", "vjepa2"}},
      {"a ViTPose", "patches that begin outside of the picture are", {}, {"vitpose", "vitpose_backbone"}},
      {"an EoMT", "queries that join the patches behind some blocks are", {}, {"eomt", "eomt_dinov3"}},
      {"an X-CLIP", "a token that frames pass to each other is", {}, {"xclip", "xclip_vision_model"}},
      {"a ViLT", "words beside the patches are", {}, {"vilt"}},
      {"a GroupViT", "groups of patches are", {}, {"groupvit", "groupvit_vision_model"}},
      {"Phi 4's vision tower",
       "attention that is causal or not by which code computes it is",
       {},
       {"phi4_multimodal", "phi4_multimodal_vision"}},
      {"Llama 3.2's vision tower", "tiles of a picture and gates are", {}, {"mllama", "mllama_vision_model"}},
      {"an InternViT under its publisher's own names",
       "these names are",
       {{{"layers.0.ls1"}, {"layers.0.attn.qkv.weight"}}},
       {"intern_vit_6b"}},
      {another_vit,
       "differential attention with two numbers for its share is",
       {{{"blocks.0.attn.lambda_a"}}, {{"blocks.0.lambda_a"}}}},
      {another_vit,
       "convolutions of that kind in front of the blocks are",
       {{{"patch_embed.backbone."},
         {"!patch_embed.backbone.0.conv.weight"},
         {"!patch_embed.backbone.conv1.0.weight"},
         {"!patch_embed.backbone.stem.conv.weight"},
         {"!patch_embed.backbone.conv.weight"}}}},
      {"Llama 4's vision tower",
       "rotary positions are",
       {{{"vision_adapter.mlp.fc1.weight"}}},
       {"llama4", "llama4_vision_model"}},
      {"a masked autoencoder with its decoder",
       "the decoder is",
       {{{"decoder_embed.weight"}, {"decoder_pos_embed"}},
        {{"decoder.decoder_embed.weight"}},
        {{"encoder_to_decoder.weight"}}}},
      {"a hierarchical Transformer",
       "stages of falling resolution are",
       {{{"stages.0.layers.0.attn.qkv.weight"}},
        {{"encoder.block.0.0.attention.self.query.weight"}},
        {{"stages.0.blocks.0.attention.q_proj.weight"}}},
       {"hiera", "pvt", "pvt_v2", "segformer", "mobilevit", "levit"}},
      {"a convolutional network",
       "convolutions behind the patches are",
       {{{"stages.0.layers.0.dwconv.weight"}},
        {{"stages.0.blocks.0.conv_dw.weight"}},
        {{"layer1.0.conv1.weight"}, {"!patch_embed.backbone."}},
        {{"stages.0.layers.0.layer.0.convolution.weight"}}},
       {"convnext", "convnextv2", "resnet"}},
  };
  return table;
}

bool is(std::string_view name, std::string_view sign) {
  if (sign.ends_with('.')) return name.starts_with(sign) || name.find("." + std::string(sign)) != name.npos;
  if (!name.ends_with(sign)) return false;
  return name.size() == sign.size() || name[name.size() - sign.size() - 1] == '.';
}

bool shows(const TensorShapes& tensors, Sign sign) {
  const bool absent = sign.name.starts_with('!');
  if (absent) sign.name.remove_prefix(1);
  return absent != std::ranges::any_of(tensors, [&](const auto& tensor) {
           return is(tensor.first, sign.name) && (sign.rank == 0 || tensor.second.size() == sign.rank);
         });
}

std::string sentence(const Foreign& kind) {
  return "this is " + std::string(kind.what) + ": " + std::string(kind.lacks) + " not supported yet";
}

}  // namespace

std::vector<ForeignKind> foreign_kinds() {
  std::vector<ForeignKind> list;
  for (const Foreign& kind : kinds()) list.push_back({kind.what, kind.lacks});
  return list;
}

void refuse_foreign(const TensorShapes& tensors, const std::string& file) {
  for (const Foreign& kind : kinds()) {
    const bool found = std::ranges::any_of(kind.signs, [&](const Signs& signs) {
      return std::ranges::all_of(signs, [&](const Sign& sign) { return shows(tensors, sign); });
    });
    if (found) throw Error(ErrorCode::bad_file, file + ": " + sentence(kind));
  }
}

std::optional<std::string> foreign_type(std::string_view model_type) {
  for (const Foreign& kind : kinds()) {
    if (std::ranges::find(kind.types, model_type) != kind.types.end()) return sentence(kind);
  }
  return std::nullopt;
}

}  // namespace vitrine
