#include "model/files/config_hugging_face.h"

#include <algorithm>
#include <string_view>

namespace vitrine {
namespace {

using Json = nlohmann::json;

// A "model_type" and the defaults in which the configuration classes differ.
struct Type {
  std::string_view name;
  std::string_view family;  // how its tensors are named
  uint64_t patch_size;
  Activation activation;
  double eps;
};
constexpr Type types[] = {
    {"vit", "hf", 16, Activation::gelu, 1e-12},
    {"deit", "hf", 16, Activation::gelu, 1e-12},
    {"dinov2", "hf_dinov2", 14, Activation::gelu, 1e-6},
    {"dinov2_with_registers", "hf_dinov2", 16, Activation::gelu, 1e-6},
    {"clip", "hf_clip", 32, Activation::gelu_quick, 1e-5},
    {"clip_vision_model", "hf_clip", 32, Activation::gelu_quick, 1e-5},
    {"siglip", "hf_siglip", 16, Activation::gelu_tanh, 1e-6},
    {"siglip_vision_model", "hf_siglip", 16, Activation::gelu_tanh, 1e-6},
};

const Type& type_of(const JsonObject& object) {
  const Json& found = *object.find("model_type");
  const auto type = std::ranges::find_if(types, [&](const Type& known) { return found == known.name; });
  if (type == std::ranges::end(types)) {
    std::string names;
    for (const Type& known : types) names += (names.empty() ? "\"" : ", \"") + std::string(known.name) + '"';
    object.fail("model_type", found, "one of " + names + ", the types that this version reads");
  }
  return *type;
}

// The number of classes; 0 without a classifier. Whether the classes that a config lists have one depends on
// the model class that was saved.
uint64_t read_classes(const JsonObject& object, uint64_t in_tensors) {
  bool has_head = in_tensors > 0;
  if (const Json* names = object.find("architectures")) {
    if (!names->is_array() || names->empty() || !names->front().is_string()) {
      object.fail("architectures", *names, "a list of class names");
    }
    has_head = names->front().get<std::string>().find("ForImageClassification") != std::string::npos;
  }
  if (!has_head) return 0;
  if (const Json* labels = object.find("id2label")) {
    if (!labels->is_object() || labels->empty()) object.fail("id2label", *labels, "an object of labels");
    return labels->size();
  }
  if (const auto count = object.whole("num_labels")) return *count;
  return in_tensors ? in_tensors : 2;  // the library's default
}

void read_dinov2(const JsonObject& object, ViTConfig& c) {
  const double ratio = object.number("mlp_ratio").value_or(4);
  const double rows = static_cast<double>(c.dim) * ratio;
  if (!(rows >= 1 && rows < 1e9)) {
    object.fail("mlp_ratio", ratio, "a ratio that makes a sensible MLP");
  }
  c.mlp_hidden = static_cast<uint64_t>(rows);
  if (object.flag("use_swiglu_ffn").value_or(false)) {
    c.mlp = MlpKind::swiglu;
    c.activation = Activation::silu;  // hidden_act isn't looked at
    c.mlp_hidden = (c.mlp_hidden * 2 / 3 + 7) / 8 * 8;
  }
  c.layer_scale = true;
  c.layer_scale_init = object.number("layerscale_value").value_or(1);
  c.stochastic_depth = object.number("drop_path_rate").value_or(0);
  const bool registers = object.text("model_type") == "dinov2_with_registers";
  c.registers = registers ? object.whole("num_register_tokens").value_or(4) : 0;
  c.position_span = c.registers ? PositionSpan::class_and_patches : PositionSpan::all;
  c.position_resize = registers ? PositionResize::bicubic_antialias : PositionResize::bicubic;
}

}  // namespace

void check_hugging_face_type(const JsonObject& object) { type_of(object); }

JsonObject vision_part(const JsonObject& object) {
  const auto type = object.text("model_type");
  if (type != "clip" && type != "siglip") return object;
  // The first one is older; where a file has both, CLIP's class believes it.
  for (const char* key : {"vision_config_dict", "vision_config"}) {
    if (auto nested = object.object(key)) return *nested;
  }
  static const Json nothing = Json::object();
  return JsonObject(nothing, object.file());
}

void read_hugging_face(const JsonObject& object, const Naming& naming, ViTConfig& c) {
  const Type& type = type_of(object);
  if (naming.family->name != type.family) {
    object.fail("model_type", std::string(type.name),
                "the type of a " + std::string(naming.family->title) + ", which the tensors are named as");
  }
  const JsonObject vision = vision_part(object);
  c.image_height = c.image_width = 224;
  c.patch_height = c.patch_width = type.patch_size;
  vision.sides("image_size", c.image_height, c.image_width);
  vision.sides("patch_size", c.patch_height, c.patch_width);
  c.channels = vision.whole("num_channels").value_or(3);
  c.dim = vision.whole("hidden_size").value_or(768);
  c.depth = vision.whole("num_hidden_layers").value_or(12);
  c.heads = vision.whole("num_attention_heads").value_or(12);
  c.key_width = c.value_width = 0;
  c.mlp = MlpKind::plain;
  c.mlp_hidden = vision.whole("intermediate_size").value_or(3072);
  c.activation = vision.activation("hidden_act").value_or(type.activation);
  c.eps = vision.number("layer_norm_eps").value_or(type.eps);
  c.qkv_bias = vision.flag("qkv_bias").value_or(true);
  c.dropout = vision.number("hidden_dropout_prob").value_or(0);
  c.classes = read_classes(object, c.classes);
  if (type.family == "hf" || type.family == "hf_dinov2") {
    c.attention_dropout = vision.number("attention_probs_dropout_prob").value_or(0);
  } else {
    c.attention_dropout = vision.number("attention_dropout").value_or(0);
  }
  if (type.family == "hf_dinov2") {
    read_dinov2(vision, c);
    c.pool = c.classes ? Pool::token_and_mean : Pool::token;
  } else if (type.family == "hf_clip") {
    // The classifier sees the mean of patches that no norm has touched.
    c.pool = c.classes ? Pool::mean : Pool::token;
    c.fc_norm = c.classes == 0;
    c.embedding_size = c.classes || !c.embedding_size ? 0 : object.whole("projection_dim").value_or(512);
  } else if (type.family == "hf_siglip") {
    const bool head = vision.flag("vision_use_head").value_or(true);
    c.pool = c.classes || !head ? Pool::mean : Pool::attention;
  }
}

}  // namespace vitrine
