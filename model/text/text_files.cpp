// A text tower from the files of transformers' CLIPModel, SiglipModel and Siglip2Model.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "model/files/file_dtype.h"
#include "model/files/hub_cache.h"
#include "model/files/json_object.h"
#include "model/files/tensor_files.h"
#include "model/text/text_tower.h"
#include "runtime/util/json.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Json = nlohmann::json;

std::vector<ModulePath> block_paths() {
  return {{Module::norm1, {"text_model.encoder.layers.*.layer_norm1."}},
          {Module::qkv,
           {"text_model.encoder.layers.*.self_attn.q_proj.", "text_model.encoder.layers.*.self_attn.k_proj.",
            "text_model.encoder.layers.*.self_attn.v_proj."}},
          {Module::projection, {"text_model.encoder.layers.*.self_attn.out_proj."}},
          {Module::norm2, {"text_model.encoder.layers.*.layer_norm2."}},
          {Module::fc1, {"text_model.encoder.layers.*.mlp.fc1."}},
          {Module::fc2, {"text_model.encoder.layers.*.mlp.fc2."}},
          {Module::norm, {"text_model.final_layer_norm."}},
          {Module::embedding, {"text_projection."}},
          {Module::head, {"text_model.head."}}};
}

std::optional<TextKind> kind_named(const std::optional<std::string>& type) {
  if (type == "clip") return TextKind::clip;
  if (type == "siglip" || type == "siglip2") return TextKind::siglip;
  return std::nullopt;
}

TextKind kind_of(const JsonObject& object) {
  const auto type = object.text("model_type");
  if (const auto kind = kind_named(type)) return *kind;
  const std::string expected = R"("clip", "siglip" or "siglip2", whose texts are read)";
  if (type) object.fail("model_type", *type, expected);
  throw Error(ErrorCode::bad_file, object.file() + ": found no \"model_type\", expected " + expected);
}

TextConfig read_text_config(const JsonObject& object) {
  TextConfig config{.kind = kind_of(object), .lower = object.text("model_type") == "siglip2"};
  const bool clip = config.kind == TextKind::clip;
  static const Json nothing = Json::object();
  JsonObject text(nothing, object.file());
  // The first one is older; where a file has both, CLIP's class believes it.
  for (const char* key : {"text_config_dict", "text_config"}) {
    if (auto nested = object.object(key)) {
      text = *nested;
      break;
    }
  }
  ViTConfig& c = config.blocks;
  c.dim = text.whole("hidden_size").value_or(clip ? 512 : 768);
  c.depth = text.whole("num_hidden_layers").value_or(12);
  c.heads = text.whole("num_attention_heads").value_or(clip ? 8 : 12);
  c.mlp_hidden = text.whole("intermediate_size").value_or(clip ? 2048 : 3072);
  c.activation =
      text.activation("hidden_act").value_or(clip ? Activation::gelu_quick : Activation::gelu_tanh);
  c.eps = text.number("layer_norm_eps").value_or(clip ? 1e-5 : 1e-6);
  c.causal = clip;
  c.classes = 0;
  c.validate(text.file());
  config.vocabulary = text.whole("vocab_size").value_or(clip ? 49408 : 32000);
  config.length = text.whole("max_position_embeddings").value_or(clip ? 77 : 64);
  config.width =
      clip ? object.whole("projection_dim").value_or(512) : text.whole("projection_size").value_or(c.dim);
  const Json* end = text.find("eos_token_id");
  const auto id = end ? as_whole(*end) : std::optional<uint64_t>(49407);
  if (!id || *id > UINT32_MAX) text.fail("eos_token_id", *end, "a token's number");
  config.end_of_text = static_cast<uint32_t>(*id);
  constexpr uint64_t sensible = 1u << 20;
  const auto within = [&](const char* key, uint64_t value, uint64_t most) {
    if (value == 0 || value > most) text.fail(key, value, "1 to " + std::to_string(most));
  };
  within("vocab_size", config.vocabulary, 1u << 24);
  within("max_position_embeddings", config.length, 1u << 16);
  within(clip ? "projection_dim" : "projection_size", config.width, sensible);
  return config;
}

const StoredTensor& require(const TensorFiles& files, const std::string& name,
                            std::span<const uint64_t> expected) {
  const StoredTensor* found = files.find(name);
  const std::string file = shown(files.path());
  if (!found) {
    throw Error(ErrorCode::bad_file,
                file + ": tensor '" + name + "' is missing, expected shape " + shape_text(expected));
  }
  if (!std::ranges::equal(found->info->shape, expected)) {
    throw Error(ErrorCode::bad_file, file + ": tensor '" + name + "' has shape " +
                                         shape_text(found->info->shape) + ", expected " +
                                         shape_text(expected));
  }
  if (!is_float_weight(found->info->dtype)) {
    throw Error(ErrorCode::bad_file, file + ": tensor '" + name + "' is of type " +
                                         std::string(name_of(found->info->dtype)) +
                                         ", expected F32, F16 or BF16");
  }
  return *found;
}

// A number that is learned: stored as [] or [1].
double read_number(const TensorFiles& files, const std::string& name) {
  const StoredTensor* found = files.find(name);
  const std::vector<uint64_t> one{1}, none;
  const double value = static_cast<double>(
      require(files, name, found && found->info->shape.size() == 1 ? one : none).floats().front());
  if (!std::isfinite(value)) {
    throw Error(ErrorCode::bad_file,
                shown(files.path()) + ": '" + name + "' isn't finite, expected a number");
  }
  return value;
}

}  // namespace

bool has_text_tower(const Model& model) {
  const std::filesystem::path config = model.path / "config.json";
  if (model.config.classes != 0 || model.path.empty() || !is_folder(model.path) || !path_exists(config))
    return false;
  const Json json = read_json(config);
  return kind_named(JsonObject(json, shown(config)).text("model_type")).has_value();
}

TextModel open_text_model_of(const Model& model, Warn warn) {
  TextModel text = open_text_model(model.path, std::move(warn));
  const uint64_t width = model.config.feature_width();
  if (model.config.classes != 0 || width != text.config.width) {
    throw Error(ErrorCode::bad_file, shown(model.name) + ": found pictures' vectors of " +
                                         std::to_string(width) + " numbers, expected " +
                                         std::to_string(text.config.width) + " as of texts");
  }
  return text;
}

TextModel open_text_model(const std::filesystem::path& model, Warn warn) {
  const bool there = path_exists(model);
  const std::filesystem::path path =
      there || !is_hub_name(model.string()) ? model : find_in_hub_cache(model.string(), warn);
  const std::filesystem::path config_path = path / "config.json";
  if (!is_folder(path) || !path_exists(config_path)) {
    throw Error(ErrorCode::bad_file,
                shown(path) +
                    ": found no folder with config.json, expected one that has it, the weights and a "
                    "tokenizer, to read texts");
  }
  const Json json = read_json(config_path);
  TextModel text{.config = read_text_config(JsonObject(json, shown(config_path)))};
  const TextConfig& config = text.config;
  text.files = std::make_shared<const TensorFiles>(path);
  const TensorFiles& files = *text.files;

  const Family family{.name = "text", .title = "text tower", .landmarks = {}, .paths = block_paths()};
  const TextTower tower(config);
  TensorShapes shapes;
  for (const StoredTensor& tensor : files.tensors()) shapes.emplace(tensor.info->name, tensor.info->shape);
  std::map<std::string, std::vector<FilePart>> parts;
  for (const Parameter& parameter : tower.parameters()) {
    std::vector<FilePart> found = file_parts(parameter, config.blocks, {&family, {}}, shapes);
    for (const FilePart& part : found) require(files, part.name, part.shape);
    parts.emplace(parameter.name, std::move(found));
  }
  const uint64_t dim = config.blocks.dim;
  text.tokens = require(files, "text_model.embeddings.token_embedding.weight",
                        std::vector<uint64_t>{config.vocabulary, dim});
  text.positions = require(files, "text_model.embeddings.position_embedding.weight",
                           std::vector<uint64_t>{config.length, dim});
  text.log_scale = read_number(files, "logit_scale");
  if (config.kind == TextKind::siglip) text.bias = read_number(files, "logit_bias");
  text.constants = part_weights(text.files, tower, parts, std::move(warn));
  text.tokenizer = open_tokenizer(path, config.kind, config.lower);
  if (text.tokenizer->size() > config.vocabulary) {
    throw Error(ErrorCode::bad_file, shown(path) + ": found a tokenizer of " +
                                         std::to_string(text.tokenizer->size()) +
                                         " tokens, expected at most " + std::to_string(config.vocabulary) +
                                         ", as config.json has it");
  }
  return text;
}

}  // namespace vitrine
