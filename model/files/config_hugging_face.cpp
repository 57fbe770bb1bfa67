#include "model/files/config_hugging_face.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "model/families/foreign.h"
#include "model/files/hugging_face_types.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

const HuggingFaceType& type_of(const JsonObject& object) {
  const Json& found = *object.find("model_type");
  const HuggingFaceType* type = known_type(&found);
  if (!type) {
    if (const auto tower = tower_of(object)) return type_of(*tower);
    if (const auto refusal = found.is_string() ? foreign_type(found.get<std::string>()) : std::nullopt)
      throw Error(ErrorCode::bad_file, object.file() + ": " + *refusal);
    object.fail("model_type", found,
                "one of the " + std::to_string(known_types().size()) +
                    " types that this version reads (docs/checkpoints.md), such as vit, deit, dinov2, "
                    "dinov3_vit, beit, clip_vision_model or siglip_vision_model");
  }
  return *type;
}

// The number of classes; 0 without a classifier. Whether the classes that a config lists have one depends on
// the model class that was saved.
uint64_t read_classes(const JsonObject& object, uint64_t in_tensors) {
  if (in_tensors == 0 && tower_of(object)) return 0;  // it classifies by what it writes
  bool has_head = in_tensors > 0;
  if (const std::string name = saved_class(object); !name.empty()) {
    constexpr std::array kinds = std::to_array<std::string_view>(
        {"ForImageClassification", "ForAudioClassification", "ForVideoClassification"});
    has_head =
        std::ranges::any_of(kinds, [&](std::string_view kind) { return name.find(kind) != name.npos; });
  }
  if (!has_head) return 0;
  if (const Json* labels = object.find("id2label")) {
    if (!labels->is_object() || labels->empty()) object.fail("id2label", *labels, "an object of labels");
    return labels->size();
  }
  if (const auto count = object.whole("num_labels")) return *count;
  return in_tensors ? in_tensors : 2;  // the library's default
}

uint64_t hidden_by_ratio(const JsonObject& object, uint64_t dim) {
  const double ratio = object.number("mlp_ratio").value_or(4);
  const double rows = static_cast<double>(dim) * ratio;
  if (!(rows >= 1 && rows < 1e9)) object.fail("mlp_ratio", ratio, "a ratio that makes a sensible MLP");
  return static_cast<uint64_t>(rows);
}

// What has one value that is computed.
void require(const JsonObject& object, const char* key, const Json& only) {
  const Json* value = object.find(key);
  if (value && *value != only) object.fail(key, *value, only.dump() + ", all that this version computes");
}

void read_dinov2(const JsonObject& object, ViTConfig& c) {
  c.mlp_hidden = hidden_by_ratio(object, c.dim);
  if (object.flag("use_swiglu_ffn").value_or(false)) {
    c.mlp = MlpKind::swiglu;
    c.activation = Activation::silu;  // hidden_act isn't looked at
    c.mlp_hidden = (c.mlp_hidden * 2 / 3 + 7) / 8 * 8;
  }
  c.layer_scale = true;
  c.layer_scale_init = object.number("layerscale_value").value_or(1);
  c.stochastic_depth = object.number("drop_path_rate").value_or(0);
  const bool registers = object.text("model_type") == "dinov2_with_registers";
  const bool tips = object.text("model_type") == "tipsv2_vision_model";
  c.registers = registers || tips ? object.whole("num_register_tokens").value_or(tips ? 1 : 4) : 0;
  c.position_span = c.registers ? PositionSpan::class_and_patches : PositionSpan::all;
  c.position_resize = tips        ? PositionResize::bilinear_antialias
                      : registers ? PositionResize::bicubic_antialias
                                  : PositionResize::bicubic;
}

void read_beit(const JsonObject& object, ViTConfig& c) {
  const auto says = [&](const char* key) { return object.flag(key).value_or(false); };
  const bool own = says("use_relative_position_bias"), shared = says("use_shared_relative_position_bias");
  if (own && shared) {
    object.fail("use_shared_relative_position_bias", true,
                "false where each block has a bias of its own, all that this version computes");
  }
  c.relative_bias = own ? RelativeBias::own : shared ? RelativeBias::shared : RelativeBias::none;
  c.positions = says("use_absolute_position_embeddings") ? Positions::learned : Positions::none;
  c.key_bias = false;
  c.layer_scale_init = object.number("layer_scale_init_value").value_or(0.1);
  c.layer_scale = c.layer_scale_init > 0;
  c.stochastic_depth = object.number("drop_path_rate").value_or(0.1);
  const bool mean = object.flag("use_mean_pooling").value_or(true);
  c.pool = mean ? Pool::mean : Pool::token;
  c.fc_norm = mean && c.fc_norm;  // a model without its pooler has none
  c.final_norm = !mean;
}

void read_dinov3(const JsonObject& object, ViTConfig& c) {
  if (object.flag("use_gated_mlp").value_or(false)) c.mlp = MlpKind::swiglu;
  c.qkv_bias = object.flag("query_bias").value_or(true);
  c.key_bias = !c.qkv_bias || object.flag("key_bias").value_or(false);
  const bool value_bias = object.flag("value_bias").value_or(true);
  if (value_bias != c.qkv_bias)
    object.fail("value_bias", value_bias, "the same as query_bias, all that this version computes");
  if (!c.qkv_bias && object.flag("key_bias").value_or(false))
    object.fail("key_bias", true, "false where queries have none, all that this version computes");
  c.projection_bias = object.flag("proj_bias").value_or(true);
  c.mlp_bias = object.flag("mlp_bias").value_or(true);
  c.rotary_base = object.number("rope_theta").value_or(100);
  c.layer_scale = true;
  c.layer_scale_init = object.number("layerscale_value").value_or(1);
  c.registers = object.whole("num_register_tokens").value_or(0);
  c.stochastic_depth = object.number("drop_path_rate").value_or(0);
  c.classes = 0;
  c.pool = Pool::token;
}

void read_internvl(const JsonObject& vision, ViTConfig& c) {
  require(vision, "norm_type", "layer_norm");
  require(vision, "use_qk_norm", false);
  c.layer_scale = true;
  const bool mean = vision.flag("use_mean_pooling").value_or(true);
  c.final_norm = !mean;  // transformers' own tower ends without one then
  c.pool = mean ? Pool::mean : Pool::token;
  c.fc_norm = false;
  if (vision.text("model_type") == "qianfan_ocr_vision")
    c.stochastic_depth = vision.number("drop_path_rate").value_or(0.1);
}

void read_sam(const JsonObject& object, ViTConfig& c, ConfigRemarks& remarks) {
  if (object.text("model_type") == "sam_hq_vision_model")
    remarks.assumed.push_back(object.file() +
                              ": what its decoder sees of the blocks without windows is not computed, what "
                              "leaves the neck is");
  c.mlp_hidden = object.whole("mlp_dim").value_or(hidden_by_ratio(object, c.dim));
  c.positions = object.flag("use_abs_pos").value_or(true) ? Positions::learned : Positions::none;
  c.relative_bias = object.flag("use_rel_pos").value_or(true) ? RelativeBias::decomposed : RelativeBias::none;
  c.window = object.whole("window_size").value_or(14);
  c.global_blocks = {2, 5, 8, 11};
  if (const Json* blocks = object.find("global_attn_indexes"))
    c.global_blocks = whole_list(object, "global_attn_indexes", *blocks);
  c.neck = object.whole("output_channels").value_or(256);
  c.classes = 0;
  c.pool = Pool::mean;
}

void read_aimv2(const JsonObject& vision, ViTConfig& c) {
  c.mlp = MlpKind::swiglu;
  c.eps = vision.number("rms_norm_eps").value_or(1e-5);
  c.qkv_bias = c.projection_bias = vision.flag("qkv_bias").value_or(false);
  c.mlp_bias = vision.flag("mlp_bias").value_or(false);
  c.positions = vision.flag("is_native").value_or(false) ? Positions::sincos_grid : Positions::learned;
  c.pool = vision.flag("use_head").value_or(true) ? Pool::attention : Pool::mean;
  c.pool_bias = c.qkv_bias;
}

void read_ovis2(const JsonObject& vision, ViTConfig& c) {
  c.mlp = MlpKind::swiglu;
  c.eps = vision.number("rms_norm_eps").value_or(1e-5);
  c.qkv_bias = c.projection_bias = vision.flag("qkv_bias").value_or(false);
  c.mlp_bias = vision.flag("mlp_bias").value_or(false);
  c.pool = Pool::mean;
}

// Heads of 64, an MLP four times as wide and its activation are the class's own.
void read_bridgetower(const JsonObject& vision, ViTConfig& c) {
  require(vision, "share_layernorm", true);
  c.heads = c.dim / 64;
  c.mlp_hidden = 4 * c.dim;
  c.activation = Activation::gelu_quick;
  if (vision.flag("remove_last_layer").value_or(false) && c.depth > 0) --c.depth;
  c.pool = Pool::token;
}

void read_pixio(const JsonObject& object, ViTConfig& c) {
  if (const std::string name = saved_class(object); name == "PixioBackbone")
    object.fail("architectures", name, "PixioModel: the backbone's other norm is not computed");
  c.registers = object.whole("n_cls_tokens").value_or(8);
  c.class_token = false;
  c.position_span = PositionSpan::all;
  c.mlp_hidden = hidden_by_ratio(object, c.dim);
  c.stochastic_depth = object.number("drop_path_rate").value_or(0);
  c.pool = Pool::prefix;
}

// What is dropped in some of the places in which dropout drops here.
void leave_untrained(const JsonObject& object, std::initializer_list<const char*> rates,
                     ConfigRemarks& remarks) {
  for (const char* key : rates) {
    const double rate = object.number(key).value_or(0);
    if (rate != 0)
      remarks.untrained.push_back(object.file() + ": \"" + key + "\" is " + Json(rate).dump() +
                                  ", but what is dropped here is dropped behind positions, projections and "
                                  "MLPs alike, so that nothing is");
  }
}

void read_janus(const JsonObject& vision, ViTConfig& c, ConfigRemarks& remarks) {
  require(vision, "use_qk_norm", false);
  c.mlp_hidden = hidden_by_ratio(vision, c.dim);
  leave_untrained(vision, {"hidden_dropout_rate", "projection_dropout"}, remarks);
  c.pool = Pool::first;
}

void read_mgpstr(const JsonObject& object, ViTConfig& c, ConfigRemarks& remarks) {
  require(object, "distilled", false);
  c.mlp_hidden = hidden_by_ratio(object, c.dim);
  c.activation = Activation::gelu;
  c.attention_dropout = object.number("attn_drop_rate").value_or(0);
  c.dropout = object.number("drop_rate").value_or(0);
  c.stochastic_depth = object.number("drop_path_rate").value_or(0);
  c.classes = 0;
  c.pool = Pool::token;
  if (saved_class(object) == "MgpstrForSceneTextRecognition")
    remarks.assumed.push_back(
        object.file() + ": the heads of characters and words are not computed, the tokens that they see are");
}

// Angles of rows and of columns, of one base.
void read_axial_rotation(const JsonObject& vision, ViTConfig& c) {
  require(vision, "rope_scaling", nullptr);
  c.rotary_base = vision.number("rope_theta").value_or(10000);
  if (const auto parameters = vision.object("rope_parameters")) {
    require(*parameters, "rope_type", "axial");
    c.rotary_base = parameters->number("rope_theta").value_or(c.rotary_base);
  }
}

void read_pixtral(const JsonObject& vision, ViTConfig& c) {
  c.mlp = MlpKind::swiglu;
  c.qkv_bias = false;
  c.eps = 1e-5;
  c.pool = Pool::mean;
  read_axial_rotation(vision, c);
  const uint64_t width = vision.whole("head_dim").value_or(0);
  if (width != 0 && width * c.heads != c.dim)
    vision.fail("head_dim", width, "hidden_size / num_attention_heads, all that its library computes");
}

void read_vitdet(const JsonObject& object, ViTConfig& c, ConfigRemarks& remarks) {
  require(object, "residual_block_indices", Json::array());
  leave_untrained(object, {"dropout_prob"}, remarks);
  c.mlp_hidden = hidden_by_ratio(object, c.dim);
  c.positions =
      object.flag("use_absolute_position_embeddings").value_or(true) ? Positions::learned : Positions::none;
  c.relative_bias = object.flag("use_relative_position_embeddings").value_or(false) ? RelativeBias::decomposed
                                                                                    : RelativeBias::none;
  std::vector<uint64_t> windows;
  if (const Json* blocks = object.find("window_block_indices"))
    windows = whole_list(object, "window_block_indices", *blocks);
  c.window = windows.empty() ? 0 : object.whole("window_size").value_or(0);
  c.global_blocks.clear();
  for (uint64_t block = 0; c.window != 0 && block < std::min<uint64_t>(c.depth, 1024); ++block) {
    if (std::ranges::find(windows, block) == windows.end()) c.global_blocks.push_back(block);
  }
  c.stochastic_depth = object.number("drop_path_rate").value_or(0);
  c.classes = 0;
  c.pool = Pool::mean;
}

void read_yolos(const JsonObject& object, ViTConfig& c, ConfigRemarks& remarks) {
  c.detection_tokens = object.whole("num_detection_tokens").value_or(100);
  c.block_positions = c.depth > 1 && object.flag("use_mid_position_embeddings").value_or(true);
  c.positions = Positions::learned;
  c.position_span = PositionSpan::all;
  c.classes = 0;
  c.pool = Pool::token;
  const Json* classes = object.find("architectures");
  if (classes && *classes == Json{"YolosForObjectDetection"})
    remarks.assumed.push_back(
        object.file() + ": the heads of classes and boxes are not computed, the tokens that they see are");
}

// Of how many frames one is, and how many follow each other.
struct Tubelets {
  uint64_t frames = 2, height = 16, width = 16, count = 0;
};
Tubelets tubelets_of(const JsonObject& object) {
  Tubelets t;
  const bool three = object.text("model_type") == "vivit";  // sides in one list, else a number of frames
  const Json* size = object.find("tubelet_size");
  if (three && size) {
    const std::vector<uint64_t> sides = whole_list(object, "tubelet_size", *size);
    if (sides.size() != 3) object.fail("tubelet_size", *size, "[frames, height, width]");
    t.frames = sides[0];
    t.height = sides[1];
    t.width = sides[2];
  } else if (!three) {
    t.frames = object.whole("tubelet_size").value_or(2);
    object.sides("patch_size", t.height, t.width);
  }
  if (t.frames == 0) object.fail("tubelet_size", *size, "a frame at least");
  const uint64_t frames = object.whole("num_frames").value_or(three ? 32 : 16);
  t.count = frames / t.frames;
  if (t.count == 0) object.fail("num_frames", frames, "as many as a tubelet has");
  return t;
}

// A video is a picture of its tubelets, one below the other, whose frames are channels.
void read_video(const JsonObject& object, ViTConfig& c) {
  const Tubelets t = tubelets_of(object);
  c.channels *= t.frames;
  c.patch_height = t.height;
  c.patch_width = t.width;
  if (const uint64_t rows = c.image_height / t.count; rows % t.height != 0)
    object.fail("image_size", rows,
                "whole patches of " + std::to_string(t.height) + ", all that this version computes");
  if (object.text("model_type") == "vivit") {
    c.pool = Pool::token;
    return;
  }
  c.positions = Positions::sincos;
  c.position_span = PositionSpan::all;
  c.qkv_bias = object.flag("qv_bias").value_or(true);
  c.key_bias = !c.qkv_bias;
  const bool mean = object.flag("use_mean_pooling").value_or(true);
  c.final_norm = !mean;
  c.fc_norm = mean && c.classes > 0;
  if (c.fc_norm) c.final_eps = 1e-5;  // whatever layer_norm_eps is
  c.pool = mean ? Pool::mean : Pool::first;
}

void read_ast(const JsonObject& object, ViTConfig& c) {
  if (const Json* channels = object.find("num_channels")) {
    if (*channels != 1) object.fail("num_channels", *channels, "1, all that its library computes");
  }
  c.channels = 1;
  c.patch_stride_height = object.whole("frequency_stride").value_or(10);
  c.patch_stride_width = object.whole("time_stride").value_or(10);
  c.pool = Pool::prefix;
  c.fc_norm = c.classes > 0;
}

}  // namespace

void read_image_size(const JsonObject& object, uint64_t& height, uint64_t& width) {
  const JsonObject vision = vision_part(object);
  const HuggingFaceType* type = known_type(vision.find("model_type"));
  if (type && type->family == "hf_ast") {  // frequencies are rows
    height = vision.whole("num_mel_bins").value_or(128);
    width = vision.whole("max_length").value_or(1024);
  } else if (type && type->family == "hf_video") {
    const Tubelets t = tubelets_of(vision);
    height = width = type->sizes.image_size;
    vision.sides("image_size", height, width);
    height *= t.count;
  } else if (type && type->family == "hf_mgpstr" && !vision.find("image_size")) {
    height = 32;
    width = 128;
  } else if (type && type->family == "hf_yolos" && !vision.find("image_size")) {
    height = 512;
    width = 864;
  } else if (type && type->family == "hf_siglip2") {  // the square of which its positions are
    const auto places = static_cast<double>(vision.whole("num_patches").value_or(256));
    height = width =
        static_cast<uint64_t>(std::sqrt(places)) * vision.whole("patch_size").value_or(type->patch_size);
  } else {
    vision.sides("image_size", height, width);
  }
}

std::vector<std::string_view> hugging_face_types(std::string_view family) {
  std::vector<std::string_view> names;
  for (const HuggingFaceType& type : known_types()) {
    if (type.family == family) names.push_back(type.name);
  }
  return names;
}

void check_hugging_face_type(const JsonObject& object) { type_of(object); }

bool holds_more_than_a_tower(const JsonObject& object) {
  constexpr std::array kinds =
      std::to_array<std::string_view>({"ForMaskedImageModeling", "ForPreTraining", "ForObjectDetection",
                                       "ForSemanticSegmentation", "ForSceneTextRecognition"});
  if (tower_of(object)) return true;
  if (!known_type(object.find("model_type"))) return false;
  const std::string name = saved_class(object);
  return std::ranges::any_of(kinds, [&](std::string_view kind) { return name.ends_with(kind); });
}

bool library_moves_places(uint64_t side) {
  const double step = 1 / static_cast<double>(side);
  for (uint64_t i = 1; i < side; ++i) {
    const float place = static_cast<float>(i) * (1.0f / static_cast<float>(side));
    const auto is_in_front = [&](uint64_t lanes) {  // so many edges are computed at once
      const uint64_t lane = (i - 1) % lanes;
      const auto first = static_cast<float>(step + step * static_cast<double>(i - 1 - lane));
      return place < static_cast<float>(static_cast<double>(first) + step * static_cast<double>(lane));
    };
    if (is_in_front(1) || is_in_front(8) || is_in_front(16)) return true;
  }
  return false;
}

std::string_view hugging_face_family(const JsonObject& object) {
  const HuggingFaceType* type = known_type(vision_part(object).find("model_type"));
  if (!type) type = known_type(object.find("model_type"));
  return type ? type->family : std::string_view();
}

JsonObject vision_part(const JsonObject& object) {
  if (auto tower = tower_of(object)) return *tower;
  const auto type = object.text("model_type");
  if (type != "clip" && type != "siglip") return object;
  // The first one is older; where a file has both, CLIP's class believes it.
  for (const char* key : {"vision_config_dict", "vision_config"}) {
    if (auto nested = object.object(key)) return *nested;
  }
  static const Json nothing = Json::object();
  return JsonObject(nothing, object.file());
}

void read_hugging_face(const JsonObject& object, const Naming& naming, ViTConfig& c, ConfigRemarks& remarks) {
  const HuggingFaceType& type = type_of(object);
  if (naming.family->name != type.family) {
    object.fail("model_type", std::string(type.name),
                "the type of a " + std::string(naming.family->title) + ", which the tensors are named as");
  }
  const JsonObject vision = vision_part(object);
  c.image_height = c.image_width = type.sizes.image_size;
  c.patch_height = c.patch_width = type.patch_size;
  read_image_size(object, c.image_height, c.image_width);
  vision.sides("patch_size", c.patch_height, c.patch_width);
  c.channels = vision.whole("num_channels").value_or(3);
  const bool idefics = type.name == "idefics_vision";
  c.dim = vision.whole(idefics ? "embed_dim" : "hidden_size").value_or(type.sizes.dim);
  c.depth = vision.whole("num_hidden_layers").value_or(type.sizes.depth);
  c.heads = vision.whole("num_attention_heads").value_or(type.sizes.heads);
  c.key_width = c.value_width = 0;
  c.mlp = MlpKind::plain;
  c.mlp_hidden = vision.whole("intermediate_size").value_or(type.sizes.mlp_hidden);
  c.activation = vision.activation("hidden_act").value_or(type.activation);
  c.eps = vision.number("layer_norm_eps").value_or(type.eps);
  const bool attention_bias =
      type.family == "hf_internvl" || type.family == "hf_qianfan" || type.family == "hf_janus";
  c.qkv_bias =
      vision.flag(attention_bias ? "attention_bias" : "qkv_bias").value_or(type.family != "hf_internvl");
  c.dropout = vision.number("hidden_dropout_prob").value_or(0);
  c.classes = read_classes(object, c.classes);
  constexpr std::array of_vit = std::to_array<std::string_view>(
      {"hf", "hf_beit", "hf_dinov2", "hf_tipsv2", "hf_pixio", "hf_ast", "hf_yolos", "hf_video"});
  if (std::ranges::find(of_vit, type.family) != of_vit.end()) {
    c.attention_dropout = vision.number("attention_probs_dropout_prob").value_or(0);
  } else {
    c.attention_dropout = vision.number("attention_dropout").value_or(0);
  }
  if (type.family == "hf_beit") {
    read_beit(vision, c);
  } else if (type.family == "hf_dinov3") {
    read_dinov3(vision, c);
  } else if (type.family == "hf_dinov2") {
    read_dinov2(vision, c);
    c.pool = c.classes ? Pool::token_and_mean : Pool::token;
  } else if (type.family == "hf_tipsv2") {
    require(vision, "use_swiglu_ffn", false);
    read_dinov2(vision, c);
    c.pool = Pool::token;
  } else if (type.name == "dpt") {
    require(object, "is_hybrid", false);
    c.position_resize = PositionResize::bilinear;
  } else if (type.family == "hf_clip") {
    // The classifier sees the mean of patches that no norm has touched.
    c.pool = c.classes ? Pool::mean : Pool::token;
    c.fc_norm = c.classes == 0;
    if (idefics) c.position_offset = 0.1;
    const uint64_t usual = object.text("model_type") == "altclip" ? 768 : 512;
    c.embedding_size = c.classes || !c.embedding_size ? 0 : object.whole("projection_dim").value_or(usual);
  } else if (type.family == "hf_owlvit") {
    c.pool = Pool::token;
    c.fc_norm = true;
    if (c.embedding_size) c.embedding_size = object.whole("projection_dim").value_or(512);
  } else if (type.family == "hf_sam") {
    read_sam(vision, c, remarks);
  } else if (type.family == "hf_video") {
    read_video(vision, c);
  } else if (type.family == "hf_yolos") {
    read_yolos(vision, c, remarks);
  } else if (type.family == "hf_vitdet") {
    read_vitdet(vision, c, remarks);
  } else if (type.family == "hf_internvl" || type.family == "hf_qianfan") {
    read_internvl(vision, c);
  } else if (type.family == "hf_aimv2") {
    read_aimv2(vision, c);
    if (c.embedding_size) c.embedding_size = object.whole("projection_dim").value_or(512);
  } else if (type.family == "hf_janus") {
    read_janus(vision, c, remarks);
  } else if (type.family == "hf_git") {
    c.pool = Pool::token;
  } else if (type.family == "hf_bridgetower") {
    read_bridgetower(vision, c);
  } else if (type.family == "hf_ovis2") {
    read_ovis2(vision, c);
  } else if (type.family == "hf_pixio") {
    read_pixio(vision, c);
  } else if (type.family == "hf_mgpstr") {
    read_mgpstr(vision, c, remarks);
  } else if (type.family == "hf_mlcd") {
    require(vision, "num_key_value_groups", 1);
    read_axial_rotation(vision, c);
  } else if (type.family == "hf_pixtral") {
    read_pixtral(vision, c);
  } else if (type.family == "hf_ast") {
    read_ast(vision, c);
  } else if (type.family == "hf_siglip" || type.family == "hf_siglip2") {
    const bool in_fractions =
        type.name == "idefics2_vision" || type.name == "idefics3_vision" || type.name == "smolvlm_vision";
    const bool head = !in_fractions && vision.flag("vision_use_head").value_or(true);
    c.pool = c.classes || !head ? Pool::mean : Pool::attention;
    if (in_fractions) c.position_resize = PositionResize::nearest;
  }
}

}  // namespace vitrine
