#include "model/files/config_timm.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/known_architectures.h"
#include "model/vit/presets.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

// What decides that an architecture is computed in one way rather than another is in its name, and not in the
// tensors: blocks that normalise behind the branch have the names and shapes of plain ones. So a name has to
// be a preset's, or one that differs from a preset's in nothing but sizes or what timm once wrote behind it.
struct Architecture {
  ViTConfig config;
  std::string taken_for = {};  // the preset; empty where it has the very name
};

// A name without the numbers of its patches and its image: "vit_base_patch16_clip_224" is
// "vit_base_patch_clip_#".
struct Stem {
  std::string text;
  uint64_t patch = 0, image = 0;
  bool usable = true;  // says its patches, and at most one image size
};

uint64_t number_in(std::string_view digits) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

Stem stem_of(std::string_view name) {
  constexpr std::string_view patch = "patch";
  Stem stem;
  while (!name.empty()) {
    const size_t end = std::min(name.find('_'), name.size());
    const std::string_view word = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    if (!stem.text.empty()) stem.text += '_';
    if (const uint64_t image = number_in(word)) {
      stem.usable &= stem.image == 0;
      stem.image = image;
      stem.text += '#';
    } else if (const uint64_t side = word.starts_with(patch) ? number_in(word.substr(patch.size())) : 0) {
      stem.patch = side;
      stem.text += patch;
    } else {
      stem.text += word;
    }
  }
  stem.usable &= stem.patch != 0;
  return stem;
}

ViTConfig with_sizes(ViTConfig config, uint64_t patch, uint64_t image) {
  config.patch_height = config.patch_width = patch;
  if (image) config.image_height = config.image_width = image;
  return config;
}

// The preset that differs in sizes alone. Where several do and aren't alike otherwise (SigLIP's newer sizes
// have another activation), nobody can say which of them an unlisted size is like.
std::optional<Architecture> find_relative(std::string_view name) {
  const Stem stem = stem_of(name);
  if (!stem.usable) return std::nullopt;
  std::optional<Architecture> found;
  for (const std::string_view known : preset_names()) {
    if (const Stem other = stem_of(known); !other.usable || other.text != stem.text) continue;
    Architecture relative{with_sizes(preset(known), stem.patch, stem.image), std::string(known)};
    if (found) {
      relative.config.classes = found->config.classes;
      relative.config.image_height = found->config.image_height;
      relative.config.image_width = found->config.image_width;
      if (!(relative.config == found->config)) return std::nullopt;
    } else {
      found = relative;
    }
  }
  return found;
}

// What the table of timm's architectures has of this name; null where it has nothing.
const KnownArchitecture* find_known(std::string_view name) {
  const auto found = std::ranges::find_if(known_architectures(), [&](const KnownArchitecture& known) {
    return known.family.starts_with("timm") && known.name == name;
  });
  return found == known_architectures().end() ? nullptr : &*found;
}

std::optional<Architecture> find_timm(std::string_view name) {
  name = name.substr(0, name.find('.'));
  if (const auto known = find_architecture(name)) return Architecture{*known};
  // timm's names before weights had tags: they said how a model was trained.
  for (const std::string_view training : {"_in21k", "_in21ft1k", "_sam", "_dino"}) {
    if (!name.ends_with(training)) continue;
    name.remove_suffix(training.size());
    if (const auto known = find_preset(name)) return Architecture{*known, std::string(name)};
    return std::nullopt;
  }
  return find_relative(name);
}

// Where transformers wraps a model without its head, it is called so.
const char* key_of_name(const JsonObject& object) {
  return object.find("architecture") ? "architecture" : "backbone";
}

Architecture architecture_of(const JsonObject& object) {
  const char* key = key_of_name(object);
  const std::string name = object.text(key).value_or("");
  if (const auto found = find_timm(name)) return *found;
  if (const KnownArchitecture* known = find_known(std::string_view(name).substr(0, name.find('.')))) {
    throw Error(ErrorCode::bad_file, object.file() + ": this is timm's " + name + ": " +
                                         std::string(known->lacks) + " not supported yet");
  }
  object.fail(key, Json(name), "one of timm's Vision Transformers that --arch takes");
}

void read_pool(const JsonObject& object, ViTConfig& c) {
  const std::optional<std::string> name = object.text("global_pool");
  if (!name) return;
  if (*name != "token" && *name != "avg" && *name != "map") {
    object.fail("global_pool", Json(*name), "token, avg or map");
  }
  const Pool pool = *name == "token" ? Pool::token : *name == "avg" ? Pool::mean : Pool::attention;
  if (pool == c.pool) return;  // the architecture's own norms stay where they are
  c.pool = pool;
  if (!c.final_norm && !c.fc_norm) return;
  // timm moves the LayerNorm behind the mean unless fc_norm says otherwise.
  c.fc_norm = pool == Pool::mean;
  c.final_norm = !c.fc_norm;
}

// Of blocks for the class token alone.
constexpr const char* class_depth = "depth_token_only";

void read_sizes(const JsonObject& a, bool packed, ViTConfig& c) {
  a.sides("img_size", c.image_height, c.image_width);
  if (a.find("patch_size")) {  // of what the convolutions in front make of the image
    a.sides("patch_size", c.patch_height, c.patch_width);
    c.patch_height *= c.stem_stride();
    c.patch_width *= c.stem_stride();
  }
  assign(c.channels, a.whole("in_chans"));
  assign(c.classes, a.whole("num_classes"));
  const uint64_t known_dim = c.dim, known_hidden = c.mlp_hidden;
  assign(c.dim, a.whole("embed_dim"));
  assign(c.depth, a.whole("depth"));
  assign(c.class_blocks, a.whole(class_depth));
  assign(c.heads, a.whole("num_heads"));
  assign(c.qk_scale, a.number("qk_scale"));
  if (const auto ratio = a.number("mlp_ratio")) {
    const double rows = static_cast<double>(c.dim) * *ratio;
    if (!(rows >= 1 && rows < 1e9))
      a.fail("mlp_ratio", *a.find("mlp_ratio"), "a ratio that makes a sensible MLP");
    // Of a packed gate, which presets alone have, this counts both halves; of others one.
    const bool both_halves = c.mlp == MlpKind::swiglu && packed;
    c.mlp_hidden = static_cast<uint64_t>(rows) / (both_halves ? 2 : 1);
  } else if (known_hidden && c.dim != known_dim && c.dim < (1u << 24)) {  // the ratio is the architecture's
    c.mlp_hidden = known_hidden * c.dim / known_dim;
  }
  assign(c.representation_size, a.whole("representation_size"));
}

void read_positions(const JsonObject& a, ViTConfig& c) {
  if (const auto only_patches = a.flag("no_embed_class")) {
    c.position_span = *only_patches ? PositionSpan::patches : PositionSpan::all;
  }
  const auto kind = a.text("pos_embed");
  if (!kind) return;
  if (*kind != "learn" && *kind != "none" && !kind->empty()) {
    a.fail("pos_embed", Json(*kind), "learn or none");
  }
  c.positions = *kind == "learn" ? Positions::learned : Positions::none;
}

void read_structure(const JsonObject& a, ViTConfig& c) {
  assign(c.qkv_bias, a.flag("qkv_bias"));
  assign(c.class_token, a.flag("class_token"));
  assign(c.registers, a.whole("reg_tokens"));
  if (const auto norm = a.flag("pre_norm")) {
    c.pre_norm = *norm;
    c.patch_bias = !*norm;  // a norm right behind the patches makes it redundant
  }
  read_positions(a, c);
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
}

// Layers, by the names that timm gives them. A null is timm's default, whatever the architecture's own is.
void read_layers(const JsonObject& a, const Json& arguments, ViTConfig& c) {
  const auto is_null = [&](const char* key) {
    return arguments.contains(key) && arguments.at(key).is_null();
  };
  if (is_null("act_layer")) c.activation = Activation::gelu;
  assign(c.activation, a.activation("act_layer"));
  const auto norm = a.text("norm_layer");
  if (norm && *norm != "layernorm") a.fail("norm_layer", Json(*norm), "layernorm");
  if (norm || is_null("norm_layer")) c.eps = 1e-6;
}

// Arguments that make another model unless they have this value; many of them would show in no tensor.
struct OnlyValue {
  const char* key;
  Json value;
};
const std::vector<OnlyValue>& only_values() {
  static const std::vector<OnlyValue> values{
      {"qk_norm", false},       {"scale_attn_norm", false},     {"scale_mlp_norm", false},
      {"proj_bias", true},      {"pool_include_prefix", false}, {"dynamic_img_pad", false},
      {"embed_norm_layer", {}}, {"embed_layer", "PatchEmbed"},  {"block_fn", "Block"},
      {"attn_layer", "attn"},   {"use_naflex", false},          {"features_only", false},
  };
  return values;
}

// What the functions here read, and what changes nothing that is computed from weights which are there.
constexpr std::array known_arguments = std::to_array<std::string_view>({
    "img_size",        "patch_size",       "in_chans",        "num_classes",       "embed_dim",
    "depth",           "num_heads",        "qk_scale",        "mlp_ratio",         "representation_size",
    "qkv_bias",        "class_token",      "reg_tokens",      "pre_norm",          "no_embed_class",
    "pos_embed",       "global_pool",      "fc_norm",         "final_norm",        "init_values",
    "act_layer",       "norm_layer",       "mlp_layer",       "drop_rate",         "pos_drop_rate",
    "patch_drop_rate", "proj_drop_rate",   "attn_drop_rate",  "drop_path_rate",    "weight_init",
    "fix_init",        "dynamic_img_size", "strict_img_size", "pretrained_strict",
});

// Of SAM's encoder alone.
constexpr std::array window_arguments =
    std::to_array<std::string_view>({"window_size", "global_attn_indexes", "neck_chans"});

void read_windows(const JsonObject& a, const Json& arguments, ViTConfig& c) {
  assign(c.window, a.whole("window_size"));
  if (const Json* blocks = a.find("global_attn_indexes"))
    c.global_blocks = whole_list(a, "global_attn_indexes", *blocks);
  if (arguments.contains("neck_chans")) {
    c.neck = a.whole("neck_chans").value_or(0);
    c.final_norm = c.neck == 0;
  }
}

void check_arguments(const JsonObject& a, const Json& arguments, const ViTConfig& c) {
  const auto require = [&](const char* key, const Json& only) {
    const Json* value = a.find(key);
    if (value && *value != only) a.fail(key, *value, only.dump() + ", all that this version computes");
  };
  for (const auto& [key, only] : only_values()) require(key, only);
  require("mlp_layer", c.mlp == MlpKind::swiglu ? "SwiGLUPacked" : "Mlp");
  for (const auto& argument : arguments.items()) {
    const std::string& key = argument.key();
    const auto is_key = [&](std::string_view name) { return name == key; };
    if (std::ranges::any_of(known_arguments, is_key)) continue;
    const bool windows = c.relative_bias == RelativeBias::decomposed;
    if (windows && std::ranges::any_of(window_arguments, is_key)) continue;
    if (c.class_blocks > 0 && key == class_depth) continue;
    if (std::ranges::any_of(only_values(), is_key, &OnlyValue::key)) continue;
    throw Error(ErrorCode::bad_file, a.file() + ": found an argument " + in_quotes(key) +
                                         ", expected only those that timm's plain Vision Transformer takes");
  }
}

std::string text_of(double value) { return Json(value).dump(); }

// timm drops in six places, each at a rate of its own.
void read_dropout(const JsonObject& a, ViTConfig& c, ConfigRemarks& remarks) {
  const auto rate = [&](const char* key) {
    const double value = a.number(key).value_or(0);
    if (!(value >= 0 && value < 1)) a.fail(key, *a.find(key), "at least 0 and less than 1");
    return value;
  };
  const auto left_out = [&](const char* key, double value, const char* reason) {
    if (value == 0) return;
    remarks.untrained.push_back(a.file() + ": \"" + key + "\" is " + text_of(value) + ", but " + reason);
  };
  c.attention_dropout = rate("attn_drop_rate");
  c.stochastic_depth = rate("drop_path_rate");
  const double positions = rate("pos_drop_rate"), products = rate("proj_drop_rate");
  if (positions == products) {
    c.dropout = products;
  } else {
    constexpr const char* reason =
        "positions and projections have one rate here, so that nothing is dropped there";
    left_out("pos_drop_rate", positions, reason);
    left_out("proj_drop_rate", products, reason);
  }
  left_out("drop_rate", rate("drop_rate"), "nothing is dropped in front of the head");
  left_out("patch_drop_rate", rate("patch_drop_rate"), "no patch is dropped");
}

void read_arguments(const JsonObject& a, const Json& arguments, bool packed, ViTConfig& c,
                    ConfigRemarks& remarks) {
  check_arguments(a, arguments, c);
  read_sizes(a, packed, c);
  read_structure(a, c);
  read_windows(a, arguments, c);
  read_layers(a, arguments, c);
  read_dropout(a, c, remarks);
}

void read_pretrained(const JsonObject& pretrained, ViTConfig& c) {
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

std::string sides(uint64_t height, uint64_t width) {
  return std::to_string(height) + "x" + std::to_string(width);
}

}  // namespace

bool wraps_timm(const JsonObject& object) {
  const auto type = object.text("model_type");
  return type == "timm_wrapper" || type == "timm_backbone";
}

void check_timm_architecture(const JsonObject& object) { static_cast<void>(architecture_of(object)); }

ViTConfig read_timm(const JsonObject& object, const Naming& naming, ConfigRemarks& remarks) {
  Architecture architecture = architecture_of(object);
  ViTConfig& c = architecture.config;
  const std::string name = *object.text(key_of_name(object));
  // These alone were trained with grids that were resampled in another way.
  if (name.starts_with("flexivit")) {
    c.position_resize = PositionResize::bilinear;
  } else if (c.position_resize == PositionResize::bicubic) {  // no rule of its own
    c.position_resize = naming.family->position_resize;
  }
  if (const auto pretrained = object.object("pretrained_cfg")) read_pretrained(*pretrained, c);
  assign(c.classes, object.whole("num_classes"));
  read_pool(object, c);
  // What is there for maps of features has lost all that comes behind the blocks.
  if (object.text("model_type") == "timm_backbone") {
    c.classes = 0;
    c.final_norm = c.fc_norm = false;
  }
  if (const auto arguments = object.object("model_args")) {
    const bool packed = !architecture.taken_for.empty() || find_preset(name);
    read_arguments(*arguments, *object.find("model_args"), packed, c, remarks);
  }
  if (!architecture.taken_for.empty()) {
    remarks.assumed.push_back(object.file() + ": the architecture " + in_quotes(name) +
                              " isn't listed, it is taken for " + architecture.taken_for +
                              " with patches of " + sides(c.patch_height, c.patch_width) + " and images of " +
                              sides(c.image_height, c.image_width));
  }
  return c;
}

}  // namespace vitrine
