#include "model/config_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "model/presets.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

std::optional<uint64_t> as_whole(const Json& value) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0))
    return std::nullopt;
  return value.get<uint64_t>();
}

// Reads members of an object, naming the file and the field when one is of the wrong type.
class Object {
 public:
  Object(const Json& json, std::string file) : json_(json), file_(std::move(file)) {
    if (!json.is_object())
      throw Error(ErrorCode::bad_file, file_ + ": found a JSON " + json.type_name() + ", expected an object");
  }
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<uint64_t> whole(const char* key) const {
    const Json* value = find(key);
    if (!value) return std::nullopt;
    if (const auto number = as_whole(*value)) return number;
    fail(key, *value, "a whole number");
  }
  std::optional<double> number(const char* key) const {
    const Json* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_number()) fail(key, *value, "a number");
    return value->get<double>();
  }
  std::optional<bool> flag(const char* key) const {
    const Json* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) fail(key, *value, "true or false");
    return value->get<bool>();
  }
  std::optional<std::string> text(const char* key) const {
    const Json* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_string()) fail(key, *value, "a string");
    return value->get<std::string>();
  }
  // One number for both sides, or [height, width].
  void sides(const char* key, uint64_t& height, uint64_t& width) const {
    const Json* value = find(key);
    if (!value) return;
    const bool two = value->is_array() && value->size() == 2;
    const auto first = as_whole(two ? (*value)[0] : *value), second = as_whole(two ? (*value)[1] : *value);
    if (!first || !second) fail(key, *value, "a whole number or two of them");
    height = *first;
    width = *second;
  }
  [[noreturn]] void fail(const char* key, const Json& value, const std::string& expected) const {
    std::string found = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (found.size() > 60) found = found.substr(0, 60) + "...";
    throw Error(ErrorCode::bad_file,
                file_ + ": \"" + std::string(key) + "\" is " + found + ", expected " + expected);
  }
  const std::string& file() const { return file_; }

 private:
  const Json& json_;
  std::string file_;
};

template <typename Field, typename Value>
void assign(Field& field, const std::optional<Value>& value) {
  if (value) field = static_cast<Field>(*value);
}

Activation activation_named(const Object& object, const char* key, const std::string& name) {
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_tanh" || name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh")
    return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::gelu_quick;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "tanh") return Activation::tanh;
  object.fail(key, Json(name), "gelu, gelu_new, gelu_pytorch_tanh, quick_gelu, silu or tanh");
}

// Whether the classes that the config lists have a head depends on the class that was saved.
void read_hf_classes(const Object& object, ViTConfig& c) {
  bool has_head = c.classes > 0;
  if (const Json* names = object.find("architectures")) {
    if (!names->is_array() || names->empty() || !names->front().is_string()) {
      object.fail("architectures", *names, "a list of class names");
    }
    has_head = names->front().get<std::string>().find("ForImageClassification") != std::string::npos;
  }
  if (!has_head) {
    c.classes = 0;
    return;
  }
  if (const Json* labels = object.find("id2label")) {
    if (!labels->is_object() || labels->empty()) object.fail("id2label", *labels, "an object of labels");
    c.classes = labels->size();
  } else if (const auto count = object.whole("num_labels")) {
    c.classes = *count;
  } else if (c.classes == 0) {
    c.classes = 2;  // the library's default
  }
}

void read_hugging_face(const Object& object, ViTConfig& c) {
  c.image_height = c.image_width = 224;
  c.patch_height = c.patch_width = 16;
  object.sides("image_size", c.image_height, c.image_width);
  object.sides("patch_size", c.patch_height, c.patch_width);
  c.channels = object.whole("num_channels").value_or(3);
  c.dim = object.whole("hidden_size").value_or(768);
  c.depth = object.whole("num_hidden_layers").value_or(12);
  c.heads = object.whole("num_attention_heads").value_or(12);
  c.key_width = c.value_width = 0;
  c.mlp_hidden = object.whole("intermediate_size").value_or(3072);
  c.activation = activation_named(object, "hidden_act", object.text("hidden_act").value_or("gelu"));
  c.mlp = MlpKind::plain;
  c.eps = object.number("layer_norm_eps").value_or(1e-12);
  c.qkv_bias = object.flag("qkv_bias").value_or(true);
  c.dropout = object.number("hidden_dropout_prob").value_or(0);
  c.attention_dropout = object.number("attention_probs_dropout_prob").value_or(0);
  read_hf_classes(object, c);
}

void read_pool(const Object& object, ViTConfig& c) {
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
void read_timm_arguments(const Object& a, ViTConfig& c) {
  a.sides("img_size", c.image_height, c.image_width);
  a.sides("patch_size", c.patch_height, c.patch_width);
  assign(c.channels, a.whole("in_chans"));
  assign(c.dim, a.whole("embed_dim"));
  assign(c.depth, a.whole("depth"));
  assign(c.heads, a.whole("num_heads"));
  if (const auto ratio = a.number("mlp_ratio")) {
    const double rows = static_cast<double>(c.dim) * *ratio;
    if (!(rows >= 1 && rows < 1e9))
      a.fail("mlp_ratio", *a.find("mlp_ratio"), "a ratio that makes a sensible MLP");
    c.mlp_hidden = static_cast<uint64_t>(rows) / (c.mlp == MlpKind::swiglu ? 2 : 1);
  }
  assign(c.qkv_bias, a.flag("qkv_bias"));
  assign(c.class_token, a.flag("class_token"));
  assign(c.registers, a.whole("reg_tokens"));
  assign(c.pre_norm, a.flag("pre_norm"));
  assign(c.representation_size, a.whole("representation_size"));
  if (const auto only_patches = a.flag("no_embed_class")) {
    c.position_span = *only_patches ? PositionSpan::patches : PositionSpan::all;
  }
  read_pool(a, c);
  if (const auto norm = a.flag("fc_norm")) {
    c.fc_norm = *norm;
    c.final_norm = !*norm;
  }
  if (const auto norm = a.flag("final_norm"); norm && !*norm) c.final_norm = c.fc_norm = false;
  if (const auto init = a.number("init_values")) {
    c.layer_scale = *init != 0;
    c.layer_scale_init = *init;
  }
  if (const auto act = a.text("act_layer")) c.activation = activation_named(a, "act_layer", *act);
  assign(c.dropout, a.number("drop_rate"));
  assign(c.attention_dropout, a.number("attn_drop_rate"));
  assign(c.stochastic_depth, a.number("drop_path_rate"));
}

void read_timm(const Object& object, ViTConfig& c) {
  const std::string architecture = object.text("architecture").value_or("");
  // An architecture that isn't listed is what its tensors say.
  if (const auto known = find_preset(architecture)) {
    const PositionResize resize = c.position_resize;
    c = *known;
    c.position_resize = resize;
  }
  // These alone were trained with grids that were resampled in another way.
  if (architecture.starts_with("flexivit")) c.position_resize = PositionResize::bilinear;
  if (const Json* cfg = object.find("pretrained_cfg")) {
    const Object pretrained(*cfg, object.file() + " (pretrained_cfg)");
    if (const Json* size = pretrained.find("input_size")) {
      std::vector<uint64_t> sizes;
      if (size->is_array()) {
        for (const Json& extent : *size) sizes.push_back(as_whole(extent).value_or(0));
      }
      if (sizes.size() != 3) pretrained.fail("input_size", *size, "[channels, height, width]");
      c.channels = sizes[0];
      c.image_height = sizes[1];
      c.image_width = sizes[2];
    }
    assign(c.classes, pretrained.whole("num_classes"));
  }
  assign(c.classes, object.whole("num_classes"));
  read_pool(object, c);
  if (const Json* arguments = object.find("model_args")) {
    read_timm_arguments(Object(*arguments, object.file() + " (model_args)"), c);
  }
}

void read_own(const Json& fields, ViTConfig& c, const std::string& file) {
  const Object object(fields, file + " (vitrine)");
  for (const auto& [key, value] : fields.items()) {
    if (!value.is_primitive()) object.fail(key.c_str(), value, "a number, a word, true or false");
    set_field(c, key, value.is_string() ? value.get<std::string>() : value.dump(), file, ErrorCode::bad_file);
  }
}

// The image that a config names, where it does: it decides how the position table is read.
InferHints with_image(const Object& object, InferHints hints) {
  uint64_t height = 0, width = 0;
  object.sides("image_size", height, width);
  if (const Json* arguments = object.find("model_args")) {
    Object(*arguments, object.file() + " (model_args)").sides("img_size", height, width);
  }
  if (!hints.image_height) hints.image_height = height;
  if (!hints.image_width) hints.image_width = width;
  return hints;
}

}  // namespace

void check_model_type(const Json& json, const std::string& file) {
  const Object object(json, file);
  if (const Json* type = object.find("model_type")) {
    if (*type != "vit" && *type != "deit") {
      object.fail("model_type", *type, "\"vit\" or \"deit\", the types that this version reads");
    }
  } else if (!object.find("architecture") && !object.find("vitrine")) {
    throw Error(
        ErrorCode::bad_file,
        file + ": found neither \"model_type\" nor \"architecture\" nor \"vitrine\", expected one of them");
  }
}

ViTConfig read_config(const Json& json, const TensorShapes& tensors, const Naming& naming,
                      const std::string& file, const InferHints& hints) {
  const Object object(json, file);
  if (const Json* own = object.find("vitrine")) {
    ViTConfig config;
    read_own(*own, config, file);
    return config;
  }
  check_model_type(json, file);
  ViTConfig config = infer_config(tensors, naming, file, with_image(object, hints));
  if (object.find("model_type")) {
    read_hugging_face(object, config);
  } else {
    read_timm(object, config);
  }
  return config;
}

}  // namespace vitrine
