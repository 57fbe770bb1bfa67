#include "train/lora.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "model/files/json_names.h"
#include "model/files/parameter_values.h"
#include "model/files/safetensors.h"
#include "model/files/safetensors_writer.h"
#include "model/vit/init_weights.h"
#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/trained_parameters.h"
#include "train/trainer.h"

namespace vitrine {
namespace {

constexpr std::string_view down_leaf = ".lora_A.weight", up_leaf = ".lora_B.weight";

// The base's names. A family that a file invents is none.
Naming naming_of(const TrainConfig& config) {
  for (const Family* family : all_families()) {
    if (family->name == config.lora.family) return {family, config.lora.prefix};
  }
  throw Error(ErrorCode::bad_file, "lora: family is " + in_quotes(config.lora.family) +
                                       ", expected one whose names are known, such as timm or hf");
}

bool fits(const LibraryLayer& layer, const std::string& target) {
  const auto is = [&](std::string_view name) { return name == target || name.ends_with("." + target); };
  return is(layer.name) || std::ranges::any_of(layer.others, is);
}

// The layers that have pairs.
std::vector<LibraryLayer> targeted(const TrainConfig& config, const std::string& origin, ErrorCode code) {
  const Naming naming = naming_of(config);
  std::vector<LibraryLayer> layers = library_layers(config.model, naming);
  if (layers.empty()) {
    throw Error(code, origin + ": a " + std::string(naming.family->title) +
                          " has no linear layers that pairs can lie beside, expected another model");
  }
  const std::vector<std::string>& targets = config.lora.targets;
  for (const std::string& target : targets) {
    if (std::ranges::any_of(layers, [&](const LibraryLayer& layer) { return fits(layer, target); })) continue;
    std::string known;
    for (const LibraryLayer& layer : layers) {
      if (layer.weight.block == 0) known += (known.empty() ? "" : ", ") + layer.name;
    }
    throw Error(code, origin + ": found the target " + in_quotes(target) +
                          ", which is the name of no linear layer, expected the end of names such as " +
                          known);
  }
  if (!targets.empty()) {
    std::erase_if(layers, [&](const LibraryLayer& layer) {
      return std::ranges::none_of(targets, [&](const std::string& target) { return fits(layer, target); });
    });
  }
  const uint64_t rank = config.lora.rank;
  for (const LibraryLayer& layer : layers) {
    const uint64_t most = std::min(layer.rows, layer.inputs());
    if (rank >= 1 && rank <= most) continue;
    throw Error(code, origin + ": found a rank of " + std::to_string(rank) + ", expected 1 to " +
                          std::to_string(most) + ", the shorter side of " + layer.name);
  }
  return layers;
}

LowRankPair pair_of(const LibraryLayer& layer, uint64_t rank) {
  LowRankPair pair{.down = layer.weight, .up = layer.weight, .first_row = layer.first_row};
  pair.down.name = layer.here + std::string(down_leaf);
  pair.down.shape = {rank, layer.inputs()};
  pair.up.name = layer.here + std::string(up_leaf);
  pair.up.shape = {layer.rows, rank};
  return pair;
}

class WithRows final : public ConstantSource {
 public:
  WithRows(ConstantSource& whole, const ViTConfig& config) : whole_(whole) {
    for (const Parameter& parameter : parameters_of(config)) shapes_.emplace(parameter.name, parameter.shape);
  }

  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override {
    const RowsName asked = rows_named(name);
    const auto found = shapes_.find(asked.parameter);
    if (asked.rows == 0 || found == shapes_.end()) return whole_.find(name, shape, dtype);
    const uint64_t row = found->second.elements() / found->second[0];
    const uint64_t begin = asked.first, end = asked.first + asked.rows;
    ConstantParts parts;
    uint64_t at = 0;  // the row that a part begins with
    for (const ConstantPart& part : whole_.find(asked.parameter, found->second, dtype)) {
      const uint64_t bytes = row * size_of(part.dtype), rows = part.bytes.size() / bytes;
      const uint64_t first = std::max(begin, at), last = std::min(end, at + rows);
      if (first < last) {
        parts.push_back({part.dtype, part.bytes.subspan((first - at) * bytes, (last - first) * bytes)});
      }
      at += rows;
    }
    return parts;
  }

 private:
  ConstantSource& whole_;
  std::map<std::string, Shape, std::less<>> shapes_;
};

// What a parameter that is trained is called in an adapter.
std::map<std::string, std::string> adapter_names(const TrainConfig& config) {
  const Naming naming = naming_of(config);
  std::map<std::string, std::string> names;
  for (const LibraryLayer& layer : targeted(config, "lora", ErrorCode::bad_file)) {
    for (const std::string_view leaf : {down_leaf, up_leaf}) {
      names[layer.here + std::string(leaf)] = std::string(adapter_prefix) + layer.name + std::string(leaf);
    }
  }
  for (const Parameter& parameter : trained_parameters(config)) {
    if (!is_head(parameter)) continue;
    names[parameter.name] = std::string(adapter_prefix) +
                            library_head(parameter.module, config.model, naming) +
                            parameter.name.substr(parameter.name.rfind('.'));
  }
  return names;
}

}  // namespace

bool trains_low_rank(const TrainConfig& config) {
  return trained_set_of(config.train, "train", ErrorCode::usage).kind == Trained::lora;
}

void take_rank(TrainConfig& config, const std::string& origin, ErrorCode code) {
  const TrainedSet set = trained_set_of(config.train, origin, code);
  if (set.kind != Trained::lora || !set.rank) return;
  config.lora.rank = *set.rank;
  config.train = "lora";
}

LowRankPairs low_rank_of(const TrainConfig& config, const std::string& origin, ErrorCode code) {
  LowRankPairs pairs;
  if (!trains_low_rank(config)) return pairs;
  const Lora& lora = config.lora;
  const auto rank = static_cast<double>(lora.rank);
  for (const LibraryLayer& layer : targeted(config, origin, code)) {
    const std::string whole = layer.weight.name.substr(0, layer.weight.name.rfind('.'));
    pairs.layers[whole].push_back(pair_of(layer, lora.rank));
  }
  pairs.scale = lora.alpha / (lora.rslora ? std::sqrt(rank) : rank);
  pairs.dropout = lora.dropout;
  return pairs;
}

bool init_low_rank(const Parameter& parameter, uint64_t seed, std::span<float> values) {
  if (parameter.name.ends_with(up_leaf)) {
    std::ranges::fill(values, 0.0f);
    return true;
  }
  if (!parameter.name.ends_with(down_leaf)) return false;
  init_uniform(parameter.name, seed, 1 / std::sqrt(static_cast<double>(parameter.shape[1])), values);
  return true;
}

std::unique_ptr<ConstantSource> with_rows(ConstantSource& whole, const ViTConfig& config) {
  return std::make_unique<WithRows>(whole, config);
}

uint64_t base_checksum_of(ConstantSource& base, const TrainConfig& config) {
  return base_checksum(base, library_layers(config.model, naming_of(config)));
}

void write_adapter(const std::filesystem::path& folder, Trainer& trainer, const std::string& base) {
  const TrainConfig& config = trainer.config();
  const Lora& lora = config.lora;
  const Naming naming = naming_of(config);
  const std::map<std::string, std::string> names = adapter_names(config);
  std::vector<std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  for (const auto& [parameter, first] : trainer.layout().places) {
    const auto dims = parameter.shape.dims();
    values.push_back(trainer.parameter(parameter));
    tensors.push_back({.name = names.at(parameter.name),
                       .shape = {dims.begin(), dims.end()},
                       .data = std::as_bytes(std::span(values.back()))});
  }
  std::vector<std::string> modules, heads;
  for (const LibraryLayer& layer : targeted(config, "lora", ErrorCode::bad_file))
    modules.push_back(layer.name);
  for (const Parameter& parameter : trained_parameters(config)) {
    if (is_head(parameter) && parameter.leaf == Leaf::weight)
      heads.push_back(library_head(parameter.module, config.model, naming));
  }
  const nlohmann::json json{{"peft_type", "LORA"},
                            {"base_model_name_or_path", base},
                            {"r", lora.rank},
                            {"lora_alpha", lora.alpha == std::floor(lora.alpha) && lora.alpha < 0x1p53
                                               ? nlohmann::json(static_cast<int64_t>(lora.alpha))
                                               : nlohmann::json(lora.alpha)},
                            {"lora_dropout", lora.dropout},
                            {"use_rslora", lora.rslora},
                            {"target_modules", modules},
                            {"modules_to_save", heads.empty() ? nlohmann::json() : nlohmann::json(heads)},
                            {"bias", "none"},
                            {"fan_in_fan_out", false},
                            {"inference_mode", true},
                            {"init_lora_weights", true},
                            {"task_type", nullptr}};
  const std::string text = json.dump(2) + "\n";
  write_file_atomically(folder / adapter_config_name, std::as_bytes(std::span(text)));
  write_safetensors(
      folder / adapter_weights_name, tensors,
      {{"format", "pt"}, {std::string(base_checksum_key), std::to_string(trainer.base_checksum())}});
}

void read_adapter(const std::filesystem::path& folder, const TrainConfig& config,
                  const ParameterLayout& layout, std::span<float> values) {
  const SafetensorsFile file(folder / adapter_weights_name);
  const std::map<std::string, std::string> names = adapter_names(config);
  for (const auto& [parameter, first] : layout.places) {
    const std::string& name = names.at(parameter.name);
    const TensorInfo* tensor = file.find(name);
    if (!tensor || tensor->dtype != FileDType::f32 ||
        file.bytes(*tensor).size() != parameter.shape.elements() * sizeof(float)) {
      throw Error(ErrorCode::bad_file, shown(file.path()) + ": found no F32 tensor '" + name + "' of " +
                                           parameter.shape.to_string() +
                                           ", expected the best adapter of this training");
    }
    std::memcpy(values.data() + first, file.bytes(*tensor).data(), file.bytes(*tensor).size());
  }
}

Lora read_lora(const JsonObject& object) {
  Lora lora;
  const nlohmann::json* json = object.find("lora");
  const auto part = object.object("lora");
  if (!part) return lora;
  check_keys(*part, *json, {"rank", "alpha", "rslora", "dropout", "targets", "head", "family", "prefix"});
  assign(lora.rank, part->whole("rank"));
  assign(lora.alpha, part->number("alpha"));
  assign(lora.rslora, part->flag("rslora"));
  assign(lora.dropout, part->number("dropout"));
  if (const nlohmann::json* targets = part->find("targets")) {
    const bool words = targets->is_array() && std::ranges::all_of(*targets, [](const nlohmann::json& target) {
                         return target.is_string() && !target.get_ref<const std::string&>().empty();
                       });
    if (!words) part->fail("targets", *targets, "a list of layers' names");
    lora.targets = targets->get<std::vector<std::string>>();
  }
  lora.head = part->flag("head");
  assign(lora.family, part->text("family"));
  assign(lora.prefix, part->text("prefix"));
  const auto require = [&](bool good, const char* key, const char* expected) {
    if (!good) part->fail(key, *part->find(key), expected);
  };
  require(lora.rank >= 1, "rank", "1 or more");
  require(std::isfinite(lora.alpha) && lora.alpha > 0, "alpha", "a number above 0");
  require(lora.dropout >= 0 && lora.dropout < 1, "dropout", "at least 0 and less than 1");
  return lora;
}

nlohmann::ordered_json to_json(const Lora& lora) {
  nlohmann::ordered_json json{{"rank", lora.rank},
                              {"alpha", lora.alpha},
                              {"rslora", lora.rslora},
                              {"dropout", lora.dropout},
                              {"targets", lora.targets}};
  if (lora.head) json["head"] = *lora.head;
  json["family"] = lora.family;
  json["prefix"] = lora.prefix;
  return json;
}

}  // namespace vitrine
