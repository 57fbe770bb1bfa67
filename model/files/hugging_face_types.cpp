#include "model/files/hugging_face_types.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace vitrine {
namespace {

constexpr TypeSizes giant{.dim = 1408, .depth = 39, .heads = 16, .mlp_hidden = 6144};

constexpr HuggingFaceType types[] = {
    {"vit", "hf", 16, Activation::gelu, 1e-12},
    {"deit", "hf", 16, Activation::gelu, 1e-12},
    {"dinov2", "hf_dinov2", 14, Activation::gelu, 1e-6},
    {"dinov2_with_registers", "hf_dinov2", 16, Activation::gelu, 1e-6},
    {"beit", "hf_beit", 16, Activation::gelu, 1e-12},
    {"data2vec-vision", "hf_beit", 16, Activation::gelu, 1e-12},
    {"dinov3_vit", "hf_dinov3", 16, Activation::gelu, 1e-5, {.dim = 384, .heads = 6, .mlp_hidden = 1536}},
    {"clip", "hf_clip", 32, Activation::gelu_quick, 1e-5},
    {"clip_vision_model", "hf_clip", 32, Activation::gelu_quick, 1e-5},
    {"vit_msn", "hf", 16, Activation::gelu, 1e-6},
    {"vit_mae", "hf", 16, Activation::gelu, 1e-12},  // all patches seen, as with its mask_ratio 0
    {"ijepa", "hf", 16, Activation::gelu, 1e-12},
    {"dpt", "hf", 16, Activation::gelu, 1e-12, {.image_size = 384}},
    {"flava_image_model", "hf", 16, Activation::gelu, 1e-12},
    {"pixio", "hf_pixio", 16, Activation::gelu, 1e-6, {1280, 32, 16, 5120, 256}},
    {"mgp-str", "hf_mgpstr", 4, Activation::gelu, 1e-5},
    {"tipsv2_vision_model", "hf_tipsv2", 14, Activation::gelu, 1e-6, {.image_size = 448}},
    {"altclip_vision_model", "hf_clip", 32, Activation::gelu_quick, 1e-5},
    {"chinese_clip_vision_model", "hf_clip", 32, Activation::gelu_quick, 1e-5},
    {"metaclip_2_vision_model", "hf_clip", 32, Activation::gelu_quick, 1e-5},
    {"clipseg_vision_model", "hf_clip", 32, Activation::gelu_quick, 1e-5},
    {"kosmos_2_vision_model", "hf_clip", 14, Activation::gelu_quick, 1e-5, {1024, 24, 16, 4096, 224}},
    {"idefics_vision", "hf_clip", 14, Activation::gelu, 1e-5, {768, 32, 16, 5120, 224}},
    {"git_vision_model", "hf_git", 16, Activation::gelu_quick, 1e-5},
    {"bridgetower_vision_model", "hf_bridgetower", 16, Activation::gelu_quick, 1e-5, {.image_size = 288}},
    {"owlvit_vision_model", "hf_owlvit", 32, Activation::gelu_quick, 1e-5, {.image_size = 768}},
    {"owlv2_vision_model", "hf_owlvit", 16, Activation::gelu_quick, 1e-5, {.image_size = 768}},
    {"blip_vision_model", "hf_blip", 16, Activation::gelu, 1e-5, {.image_size = 384}},
    {"blip_2_vision_model", "hf_blip", 14, Activation::gelu, 1e-6, giant},
    {"instructblip_vision_model", "hf_blip", 14, Activation::gelu, 1e-6, giant},
    {"instructblipvideo_vision_model", "hf_blip", 14, Activation::gelu, 1e-6, giant},
    {"sam_vision_model", "hf_sam", 16, Activation::gelu, 1e-6, {.image_size = 1024}},
    {"sam_hq_vision_model", "hf_sam", 16, Activation::gelu, 1e-6, {.image_size = 1024}},
    {"got_ocr2_vision", "hf_sam", 16, Activation::gelu, 1e-6, {.image_size = 1024}},
    {"yolos", "hf_yolos", 16, Activation::gelu, 1e-12},
    {"videomae", "hf_video", 16, Activation::gelu, 1e-12},
    {"vivit", "hf_video", 16, Activation::gelu_tanh, 1e-6},
    {"vitdet", "hf_vitdet", 16, Activation::gelu, 1e-6},
    {"internvl_vision", "hf_internvl", 14, Activation::gelu, 1e-6, {1024, 24, 16, 4096, 448}},
    {"qianfan_ocr_vision", "hf_qianfan", 14, Activation::gelu, 1e-6, {1024, 24, 16, 4096, 448}},
    {"aimv2_vision_model", "hf_aimv2", 14, Activation::silu, 1e-5, {1024, 24, 8, 2816, 224}},
    {"ovis2_vision", "hf_ovis2", 14, Activation::silu, 1e-5, {1024, 24, 8, 2816, 224}},
    {"janus_vision_model", "hf_janus", 16, Activation::gelu, 1e-6, {1024, 24, 16, 4096, 384}},
    {"mlcd_vision_model", "hf_mlcd", 14, Activation::gelu, 1e-5, {1664, 48, 16, 8192, 336}},
    {"siglip2_vision_model", "hf_siglip2", 16, Activation::gelu_tanh, 1e-6},
    {"audio-spectrogram-transformer", "hf_ast", 16, Activation::gelu, 1e-12},
    {"pixtral", "hf_pixtral", 16, Activation::gelu, 1e-5, {1024, 24, 16, 4096, 1024}},
    {"siglip", "hf_siglip", 16, Activation::gelu_tanh, 1e-6},
    {"siglip_vision_model", "hf_siglip", 16, Activation::gelu_tanh, 1e-6},
    {"idefics2_vision", "hf_siglip", 32, Activation::gelu_tanh, 1e-6},
    {"idefics3_vision", "hf_siglip", 32, Activation::gelu_tanh, 1e-6, {1152, 12, 16, 3072, 224}},
    {"smolvlm_vision", "hf_siglip", 32, Activation::gelu_tanh, 1e-6, {1152, 12, 16, 3072, 224}},
};

}  // namespace

std::span<const HuggingFaceType> known_types() { return types; }

const HuggingFaceType* known_type(const nlohmann::json* name) {
  const auto type =
      std::ranges::find_if(types, [&](const HuggingFaceType& known) { return name && *name == known.name; });
  return type == std::ranges::end(types) ? nullptr : &*type;
}

std::optional<JsonObject> tower_of(const JsonObject& object) {
  if (known_type(object.find("model_type"))) return std::nullopt;
  for (const char* key : {"vision_config", "image_config", "backbone_config", "encoder"}) {
    const nlohmann::json* tower = object.find(key);
    if (!tower || !tower->is_object()) continue;
    JsonObject vision(*tower, object.file());
    if (known_type(vision.find("model_type"))) return vision;
  }
  return std::nullopt;
}

std::string saved_class(const JsonObject& object) {
  const nlohmann::json* names = object.find("architectures");
  if (!names) return {};
  if (!names->is_array() || names->empty() || !names->front().is_string())
    object.fail("architectures", *names, "a list of class names");
  return names->front().get<std::string>();
}

}  // namespace vitrine
