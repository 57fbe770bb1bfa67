#include "model/config_json.h"

#include <nlohmann/json.hpp>

#include "model/config_hugging_face.h"
#include "model/json_object.h"
#include "model/presets.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

void read_pool(const JsonObject& object, ViTConfig& c) {
  const std::optional<std::string> name = object.text("global_pool");
  if (!name) return;
  if (*name != "token" && *name != "avg" && *name != "map") {
    object.fail("global_pool", Json(*name), "token, avg or map");
  }
  const Pool pool = *name == "token" ? Pool::token : *name == "avg" ? Pool::mean : Pool::attention;
  if (pool == c.pool) return;  // the architecture's own norms stay where they are
  // timm moves the LayerNorm behind the mean unless fc_norm says otherwise.
  c.pool = pool;
  c.fc_norm = pool == Pool::mean;
  c.final_norm = !c.fc_norm;
}

// The keyword arguments of timm's VisionTransformer.
void read_timm_arguments(const JsonObject& a, ViTConfig& c) {
  a.sides("img_size", c.image_height, c.image_width);
  a.sides("patch_size", c.patch_height, c.patch_width);
  assign(c.channels, a.whole("in_chans"));
  const uint64_t known_dim = c.dim, known_hidden = c.mlp_hidden;
  assign(c.dim, a.whole("embed_dim"));
  assign(c.depth, a.whole("depth"));
  assign(c.heads, a.whole("num_heads"));
  if (const auto ratio = a.number("mlp_ratio")) {
    const double rows = static_cast<double>(c.dim) * *ratio;
    if (!(rows >= 1 && rows < 1e9))
      a.fail("mlp_ratio", *a.find("mlp_ratio"), "a ratio that makes a sensible MLP");
    c.mlp_hidden = static_cast<uint64_t>(rows) / (c.mlp == MlpKind::swiglu ? 2 : 1);
  } else if (known_hidden && c.dim != known_dim && c.dim < (1u << 24)) {  // the ratio is the architecture's
    c.mlp_hidden = known_hidden * c.dim / known_dim;
  }
  assign(c.qkv_bias, a.flag("qkv_bias"));
  assign(c.class_token, a.flag("class_token"));
  assign(c.registers, a.whole("reg_tokens"));
  if (const auto norm = a.flag("pre_norm")) {
    c.pre_norm = *norm;
    c.patch_bias = !*norm;  // a norm right behind the patches makes it redundant
  }
  assign(c.representation_size, a.whole("representation_size"));
  if (const auto only_patches = a.flag("no_embed_class")) {
    c.position_span = *only_patches ? PositionSpan::patches : PositionSpan::all;
  }
  read_pool(a, c);
  // The first would show in no tensor.
  for (const char* other : {"pool_include_prefix", "qk_norm", "scale_attn_norm", "scale_mlp_norm"}) {
    if (a.flag(other).value_or(false)) a.fail(other, true, "false, all that this version computes");
  }
  if (const auto norm = a.flag("fc_norm")) {
    c.fc_norm = *norm;
    c.final_norm = !*norm;
  }
  if (const auto norm = a.flag("final_norm"); norm && !*norm) c.final_norm = c.fc_norm = false;
  if (const auto init = a.number("init_values")) {
    c.layer_scale = *init != 0;
    c.layer_scale_init = *init;
  }
  assign(c.activation, a.activation("act_layer"));
  assign(c.dropout, a.number("drop_rate"));
  assign(c.attention_dropout, a.number("attn_drop_rate"));
  assign(c.stochastic_depth, a.number("drop_path_rate"));
}

void read_timm(const JsonObject& object, ViTConfig& c) {
  const std::string architecture = object.text("architecture").value_or("");
  // An architecture that isn't listed is what its tensors say.
  if (const auto known = find_preset(architecture)) {
    const PositionResize resize = c.position_resize;
    c = *known;
    c.position_resize = resize;
  }
  // These alone were trained with grids that were resampled in another way.
  if (architecture.starts_with("flexivit")) c.position_resize = PositionResize::bilinear;
  if (const auto pretrained = object.object("pretrained_cfg")) {
    if (const Json* size = pretrained->find("input_size")) {
      std::vector<uint64_t> sizes;
      if (size->is_array()) {
        for (const Json& extent : *size) sizes.push_back(as_whole(extent).value_or(0));
      }
      if (sizes.size() != 3) pretrained->fail("input_size", *size, "[channels, height, width]");
      c.channels = sizes[0];
      c.image_height = sizes[1];
      c.image_width = sizes[2];
    }
    assign(c.classes, pretrained->whole("num_classes"));
  }
  assign(c.classes, object.whole("num_classes"));
  read_pool(object, c);
  if (const auto arguments = object.object("model_args")) read_timm_arguments(*arguments, c);
}

void read_own(const Json& fields, ViTConfig& c, const std::string& file) {
  const JsonObject object(fields, file + " (vitrine)");
  for (const auto& [key, value] : fields.items()) {
    if (!value.is_primitive()) object.fail(key.c_str(), value, "a number, a word, true or false");
    set_field(c, key, value.is_string() ? value.get<std::string>() : value.dump(), file, ErrorCode::bad_file);
  }
}

// The image that a config names, where it does: it decides how the position table is read.
InferHints with_image(const JsonObject& object, InferHints hints) {
  uint64_t height = 0, width = 0;
  if (object.find("model_type")) {
    vision_part(object).sides("image_size", height, width);
  } else if (const auto arguments = object.object("model_args")) {
    arguments->sides("img_size", height, width);
  }
  if (!hints.image_height) hints.image_height = height;
  if (!hints.image_width) hints.image_width = width;
  return hints;
}

}  // namespace

void check_model_type(const Json& json, const std::string& file) {
  const JsonObject object(json, file);
  if (object.find("model_type")) {
    check_hugging_face_type(object);
  } else if (!object.find("architecture") && !object.find("vitrine")) {
    throw Error(
        ErrorCode::bad_file,
        file + ": found neither \"model_type\" nor \"architecture\" nor \"vitrine\", expected one of them");
  }
}

ViTConfig read_config(const Json& json, const TensorShapes& tensors, const Naming& naming,
                      const std::string& file, const InferHints& hints) {
  const JsonObject object(json, file);
  if (const Json* own = object.find("vitrine")) {
    ViTConfig config;
    read_own(*own, config, file);
    return config;
  }
  check_model_type(json, file);
  ViTConfig config = infer_config(tensors, naming, file, with_image(object, hints));
  if (object.find("model_type")) {
    read_hugging_face(object, naming, config);
  } else {
    read_timm(object, config);
  }
  return config;
}

}  // namespace vitrine
