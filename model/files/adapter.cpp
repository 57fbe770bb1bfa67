#include "model/files/adapter.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "model/files/config_json.h"
#include "model/files/hub_cache.h"
#include "model/files/json_object.h"
#include "model/files/parameter_values.h"
#include "model/files/preprocess_files.h"
#include "model/files/safetensors.h"
#include "runtime/util/json.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;
using Json = nlohmann::json;

// What transformers 5 calls the modules of which it stores the tensors by the names of older versions.
struct NewerNames {
  std::string_view family;
  Module module;
  std::vector<std::string_view> parts;
  std::optional<MlpKind> mlp = {};  // only where the model's is of this kind
};
const std::vector<NewerNames>& newer_names() {
  static const std::vector<NewerNames> names{
      {"hf",
       Module::qkv,
       {"~layers.*.attention.q_proj", "~layers.*.attention.k_proj", "~layers.*.attention.v_proj"}},
      {"hf", Module::projection, {"~layers.*.attention.o_proj"}},
      {"hf", Module::fc1, {"~layers.*.mlp.fc1"}},
      {"hf", Module::fc2, {"~layers.*.mlp.fc2"}},
      {"hf_dinov2",
       Module::qkv,
       {"~encoder.layer.*.attention.q_proj", "~encoder.layer.*.attention.k_proj",
        "~encoder.layer.*.attention.v_proj"}},
      {"hf_dinov2", Module::projection, {"~encoder.layer.*.attention.o_proj"}},
      {"hf_dinov2", Module::fc2, {"~encoder.layer.*.mlp.down_proj"}, MlpKind::swiglu},
  };
  return names;
}

// What a library's classifier puts in front of the trunk's names; a checkpoint of the trunk alone has none.
std::vector<std::string> prefixes_of(const ViTConfig& config, const Naming& naming) {
  std::vector<std::string> prefixes;
  if (!naming.prefix.empty()) prefixes.push_back(naming.prefix);
  const std::string_view family = naming.family->name;
  if (family == "hf") prefixes.insert(prefixes.end(), {"vit.", "deit."});
  if (family == "hf_dinov2") {
    prefixes.push_back(config.registers > 0 ? "dinov2_with_registers." : "dinov2.");
  }
  if (family == "hf_clip" || family == "hf_siglip") prefixes.push_back("vision_model.");
  prefixes.push_back("");
  return prefixes;
}

std::string module_name(std::string_view path, const std::string& prefix, uint64_t block,
                        uint64_t branch = 0) {
  if (path.ends_with('.')) path.remove_suffix(1);
  const bool prefixed = path.starts_with('~');
  std::string name = (prefixed ? prefix : "") + std::string(path.substr(prefixed));
  for (const auto& [mark, number] : {std::pair('*', block), std::pair('%', branch)}) {
    if (const size_t at = name.find(mark); at != std::string::npos)
      name.replace(at, 1, std::to_string(number));
  }
  return name;
}

// The family's paths of a module; none where it is no module there that PEFT could wrap.
std::vector<std::string_view> module_paths(Module module, const ViTConfig& config, const Naming& naming) {
  const ModulePath* path = naming.family->find(module);
  if (!path) return {};
  // torchvision's attention takes the weights out of its modules.
  const bool attention = module == Module::qkv || module == Module::projection;
  if (attention && naming.family->name == "torchvision") return {};
  // One layer there has rows of both the MLP's and the attention's.
  const bool mlp = module == Module::fc1 || module == Module::fc2;
  if ((attention || mlp) && naming.family->fused_branches) return {};
  const bool head = module == Module::head || module == Module::distillation_head;
  // A gated MLP is one layer in the file and two in the library.
  if (module == Module::fc1 && config.mlp == MlpKind::swiglu && naming.family->name != "timm") return {};
  const bool other =
      head ? config.distilled_head : config.mlp == MlpKind::swiglu && naming.family->name == "hf_dinov2";
  return other && !path->alternative.empty() ? path->alternative : path->parts;
}

// Beside which layer, and which of the two matrices; nothing where the tensor is none of a pair.
struct PairTensor {
  std::string layer;
  bool up = false;
};
std::optional<PairTensor> pair_tensor(std::string_view name) {
  constexpr std::string_view down = ".lora_A.weight", up = ".lora_B.weight";
  if (name.ends_with(down)) return PairTensor{std::string(name.substr(0, name.size() - down.size())), false};
  if (name.ends_with(up)) return PairTensor{std::string(name.substr(0, name.size() - up.size())), true};
  return std::nullopt;
}

struct MergedPair {
  uint64_t first_row = 0;
  double scale = 1;
  const TensorInfo* down = nullptr;
  const TensorInfo* up = nullptr;
};

class AdaptedWeights final : public ConstantSource {
 public:
  AdaptedWeights(std::unique_ptr<ConstantSource> base, std::shared_ptr<const SafetensorsFile> file)
      : base_(std::move(base)), file_(std::move(file)) {}

  void add(const Parameter& weight, const MergedPair& pair) { pairs_[weight.name].push_back(pair); }
  void replace(const std::string& parameter, const TensorInfo& by) { replaced_[parameter] = &by; }

  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override {
    if (const auto found = replaced_.find(name); found != replaced_.end()) {
      values_ = file_->floats(*found->second);
      if (values_.size() != shape.elements()) {
        throw Error(ErrorCode::bad_file, shown(file_->path()) + ": constant '" + name + "' has shape " +
                                             shape_text(found->second->shape) + ", the graph expects " +
                                             shape.to_string());
      }
      return {{DType::f32, std::as_bytes(std::span<const float>(values_))}};
    }
    const auto found = pairs_.find(name);
    if (found == pairs_.end()) return base_->find(name, shape, dtype);
    values_.resize(shape.elements());
    read_floats(*base_, {.name = name, .shape = shape}, values_);
    for (const MergedPair& pair : found->second) merge(pair, shape[1]);
    return {{DType::f32, std::as_bytes(std::span<const float>(values_))}};
  }

 private:
  void merge(const MergedPair& pair, uint64_t inputs) {
    const std::vector<float> down = file_->floats(*pair.down), up = file_->floats(*pair.up);
    const uint64_t rank = pair.down->shape[0], rows = pair.up->shape[0];
    std::vector<double> sums(inputs);
    for (uint64_t row = 0; row < rows; ++row) {
      std::ranges::fill(sums, 0.0);
      for (uint64_t k = 0; k < rank; ++k) {
        const double factor = up[row * rank + k];
        for (uint64_t i = 0; i < inputs; ++i) sums[i] += factor * down[k * inputs + i];
      }
      float* const into = values_.data() + (pair.first_row + row) * inputs;
      for (uint64_t i = 0; i < inputs; ++i) into[i] = static_cast<float>(into[i] + pair.scale * sums[i]);
    }
  }

  std::unique_ptr<ConstantSource> base_;
  std::shared_ptr<const SafetensorsFile> file_;
  std::map<std::string, std::vector<MergedPair>, std::less<>> pairs_;
  std::map<std::string, const TensorInfo*, std::less<>> replaced_;
  std::vector<float> values_;  // what find() handed out last
};

// What adapter_config.json says of the sums.
struct AdapterConfig {
  std::string base;
  double alpha = 1;
  bool rslora = false;

  double scale(uint64_t rank) const {
    return alpha / (rslora ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
  }
};

AdapterConfig read_adapter_config(const Path& file) {
  const Json json = read_json(file);
  const JsonObject object(json, shown(file));
  const auto refuse = [&](const char* key, const char* expected) {
    object.fail(key, *object.find(key), expected);
  };
  if (object.text("peft_type").value_or("") != "LORA") {
    object.fail("peft_type", object.find("peft_type") ? *object.find("peft_type") : Json(), "\"LORA\"");
  }
  // Each changes what is added to the base in a way that isn't followed here.
  for (const char* key : {"use_dora", "use_qalora", "fan_in_fan_out", "lora_bias"}) {
    if (object.flag(key).value_or(false)) refuse(key, "false");
  }
  if (object.text("bias").value_or("none") != "none") refuse("bias", "\"none\"");
  // The others change the base's own weights, when they are loaded too.
  if (const Json* init = object.find("init_lora_weights"); init && init->is_string()) {
    const auto& how = init->get_ref<const std::string&>();
    if (how != "gaussian" && how != "eva" && how != "orthogonal")
      refuse("init_lora_weights", "true, as PEFT saves it with path_initial_model_for_weight_conversion");
  }
  if (const Json* alphas = object.find("alpha_pattern"); alphas && !alphas->empty()) {
    refuse("alpha_pattern", "one alpha for all layers");
  }
  for (const char* key : {"layer_replication", "use_bdlora", "trainable_token_indices"}) {
    if (object.find(key)) refuse(key, "null");
  }
  AdapterConfig config;
  if (!object.find("base_model_name_or_path")) {
    object.fail("base_model_name_or_path", Json(), "the base model's folder, or its name on the hub");
  }
  config.base = *object.text("base_model_name_or_path");
  const auto alpha = object.number("lora_alpha");
  if (!alpha || !std::isfinite(*alpha)) {
    object.fail("lora_alpha", object.find("lora_alpha") ? *object.find("lora_alpha") : Json(), "a number");
  }
  config.alpha = *alpha;
  assign(config.rslora, object.flag("use_rslora"));
  return config;
}

// The base's folder: as it is called, else seen from the adapter's folder, else in Hugging Face's cache.
std::string find_base(const std::string& named, const Path& folder) {
  for (const Path& path : {Path(named), folder / named}) {
    if (!path_exists(path)) continue;
    if (is_folder(path) && is_adapter(path)) {
      throw Error(ErrorCode::bad_file,
                  shown(folder / adapter_config_name) + ": the base model " + in_quotes(named) +
                      " is an adapter itself, expected a model (vitrine merge makes one)");
    }
    return path.string();
  }
  if (is_hub_name(named)) return named;
  throw Error(ErrorCode::bad_file, shown(folder / adapter_config_name) + ": the base model " +
                                       in_quotes(named) + " isn't there, expected its folder");
}

[[noreturn]] void fail(const SafetensorsFile& file, const TensorInfo& tensor, const std::string& expected) {
  throw Error(ErrorCode::bad_file, shown(file.path()) + ": found tensor " + in_quotes(tensor.name, 120) +
                                       " " + std::string(name_of(tensor.dtype)) + " " +
                                       shape_text(tensor.shape) + ", expected " + expected);
}

// Of the base's head, or a new one with as many classes as it has rows.
void take_head(ViTConfig& config, const SafetensorsFile& file, const TensorInfo& weight,
               const Naming& naming) {
  if (weight.shape.size() != 2 || weight.shape[0] < 1) fail(file, weight, "a matrix");
  const bool had = config.classes > 0;
  if (!had && naming.family->name == "hf_dinov2" && weight.shape[1] == 2 * config.dim) {
    config.pool = Pool::token_and_mean;
  }
  config.classes = weight.shape[0];
}

Preprocess preprocessing_in(const Path& folder, const Model& base) {
  Preprocess p = read_preprocess(folder, base.family, base.config);
  const ViTConfig& c = base.config;
  if (p.height() != c.image_height || p.width() != c.image_width)
    p = p.with_size(c.image_height, c.image_width);
  return p;
}

}  // namespace

bool LibraryLayer::is_called(std::string_view called) const {
  return called == name || std::ranges::find(others, called) != others.end();
}

std::vector<LibraryLayer> library_layers(const ViTConfig& config, const Naming& naming) {
  std::vector<LibraryLayer> layers;
  const std::vector<std::string> prefixes = prefixes_of(config, naming);
  for (const Parameter& parameter : parameters_of(config)) {
    const Module module = parameter.module;
    const bool linear = module == Module::qkv || module == Module::projection || module == Module::fc1 ||
                        module == Module::fc2;
    if (!linear || parameter.leaf != Leaf::weight) continue;
    const std::vector<std::string_view> stored = module_paths(module, config, naming);
    std::vector<std::string_view> called = stored;
    for (const NewerNames& newer : newer_names()) {
      const bool same = newer.family == naming.family->name && newer.module == module;
      if (same && newer.mlp.value_or(config.mlp) == config.mlp) called = newer.parts;
    }
    const std::string here = parameter.name.substr(0, parameter.name.rfind('.'));
    uint64_t first = 0;
    for (size_t i = 0; i < stored.size(); ++i) {
      LibraryLayer layer{.weight = parameter, .first_row = first, .rows = parameter.shape[0], .here = here};
      if (stored.size() > 1) {
        layer.rows = i < 2 ? config.key_columns() : config.value_columns();
        layer.here = here.substr(0, here.size() - 3) + std::string(1, "qkv"[i]);
      }
      first += layer.rows;
      layer.name = module_name(called[i], prefixes.front(), parameter.block, parameter.branch);
      for (const std::string& prefix : prefixes) {
        for (const std::string_view path : {called[i], stored[i]}) {
          layer.others.push_back(module_name(path, prefix, parameter.block, parameter.branch));
        }
      }
      layers.push_back(std::move(layer));
    }
  }
  return layers;
}

std::string library_head(Module module, const ViTConfig& config, const Naming& naming) {
  const std::vector<std::string_view> paths = module_paths(module, config, naming);
  if (!paths.empty()) return module_name(paths.front(), prefixes_of(config, naming).front(), 0);
  // Where the family's library has no classifier: as transformers calls those that it has.
  return module == Module::head ? "classifier" : "";
}

uint64_t base_checksum(ConstantSource& base, const std::vector<LibraryLayer>& layers) {
  std::vector<Parameter> weights;
  for (const LibraryLayer& layer : layers) {
    if (layer.first_row == 0) weights.push_back(layer.weight);
  }
  return checksum_of(base, weights);
}

bool is_adapter(const Path& folder) {
  std::error_code none;
  return std::filesystem::exists(folder / adapter_config_name, none) &&
         !std::filesystem::exists(folder / "model.safetensors", none);
}

Model open_adapter(const ModelOptions& options, const Path& folder, const Warn& warn) {
  const AdapterConfig settings = read_adapter_config(folder / adapter_config_name);
  const auto file = std::make_shared<const SafetensorsFile>(folder / adapter_weights_name);
  ModelOptions of_base = options;
  of_base.model = find_base(settings.base, folder);
  of_base.is_base = true;
  // What Vitrine leaves beside an adapter; PEFT doesn't.
  std::optional<ViTConfig> own;
  Json json;
  const Path own_file = folder / "config.json";
  if (path_exists(own_file)) {
    json = read_json(own_file);
    if (json.is_object() && json.contains("vitrine")) own = read_config(json, {}, {}, shown(own_file));
  }
  const bool asked_size =
      options.image_height != 0 ||
      std::ranges::any_of(options.set, [](const std::string& set) { return set.starts_with("image_"); });
  if (own && !asked_size) {
    of_base.image_height = own->image_height;
    of_base.image_width = own->image_width;
  }
  Model model = open_model(of_base, warn);
  const Naming naming = std::exchange(model.naming, {});
  model.name = options.model.string();
  model.path = folder;
  model.adapter_base = settings.base;
  ViTConfig& config = model.config;

  const std::vector<LibraryLayer> layers = library_layers(config, naming);
  if (const auto sum = file->metadata().find(base_checksum_key); sum != file->metadata().end()) {
    const std::string found = std::to_string(base_checksum(*model.constants, layers));
    if (found != sum->second) {
      throw Error(ErrorCode::bad_file,
                  shown(file->path()) + ": the adapter was trained beside weights with the checksum " +
                      in_quotes(sum->second) + ", those of its base " + in_quotes(settings.base) + " have " +
                      found + ", expected the base that it was trained with");
    }
  }
  std::vector<MergedPair> pairs(layers.size());
  std::vector<std::pair<std::string, const TensorInfo*>> heads;
  for (const TensorInfo& tensor : file->tensors()) {
    if (!is_float_weight(tensor.dtype)) fail(*file, tensor, "F32, F16 or BF16");
    if (!tensor.name.starts_with(adapter_prefix)) {
      fail(*file, tensor, "a name that begins with " + in_quotes(adapter_prefix));
    }
    const std::string_view name = std::string_view(tensor.name).substr(adapter_prefix.size());
    if (const auto of_pair = pair_tensor(name)) {
      const auto layer = std::ranges::find_if(
          layers, [&](const LibraryLayer& known) { return known.is_called(of_pair->layer); });
      if (layer == layers.end()) {
        fail(*file, tensor,
             layers.empty()
                 ? "none: nothing of this base can have one"
                 : "one beside a linear layer of a block, such as " + in_quotes(layers.front().name));
      }
      MergedPair& pair = pairs[static_cast<size_t>(layer - layers.begin())];
      const TensorInfo*& matrix = of_pair->up ? pair.up : pair.down;
      if (matrix)
        fail(*file, tensor, "one beside each layer, and " + in_quotes(matrix->name, 120) + " is there");
      matrix = &tensor;
      continue;
    }
    std::string whose;
    for (const auto& [module, here] :
         {std::pair(Module::head, "head"), {Module::distillation_head, "head_dist"}}) {
      const std::string head = library_head(module, config, naming);
      for (const char* leaf : {".weight", ".bias"}) {
        if (!head.empty() && name == head + leaf) whose = std::string(here) + leaf;
      }
    }
    if (whose.empty()) {
      fail(*file, tensor,
           "a pair lora_A and lora_B beside a linear layer, or the head " +
               in_quotes(library_head(Module::head, config, naming)));
    }
    heads.emplace_back(whose, &tensor);
    if (whose == "head.weight") take_head(config, *file, tensor, naming);
  }
  if (!heads.empty()) {
    if (config.embedding_size && (!own || own->embedding_size == 0)) config.embedding_size = 0;
    config.validate(shown(file->path()));
    model.labels = own ? read_labels(json, config.classes, shown(own_file)) : Labels();
    model.known_labels = {};
  }
  const std::vector<Parameter> parameters = parameters_of(config);
  auto weights = std::make_unique<AdaptedWeights>(std::move(model.constants), file);
  for (const auto& [here, tensor] : heads) {
    const auto parameter = std::ranges::find(parameters, here, &Parameter::name);
    if (parameter == parameters.end() || !std::ranges::equal(tensor->shape, parameter->shape.dims())) {
      fail(*file, *tensor, parameter == parameters.end() ? "no such head" : parameter->shape.to_string());
    }
    weights->replace(here, *tensor);
  }
  // All of a head or nothing.
  for (const Parameter& parameter : parameters) {
    const bool head = parameter.module == Module::head || parameter.module == Module::distillation_head;
    const auto given = [&](const auto& pair) { return pair.first == parameter.name; };
    if (!head || heads.empty() || std::ranges::any_of(heads, given)) continue;
    throw Error(ErrorCode::bad_file, shown(file->path()) + ": found no tensor for the head's " +
                                         in_quotes(parameter.name) + ", expected one of " +
                                         parameter.shape.to_string());
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    MergedPair& pair = pairs[i];
    if (!pair.down && !pair.up) continue;
    if (!pair.down || !pair.up) {
      fail(*file, pair.down ? *pair.down : *pair.up, "the pair's other matrix, too");
    }
    const uint64_t rank = pair.down->shape.empty() ? 0 : pair.down->shape[0];
    const std::vector<uint64_t> down{rank, layers[i].inputs()}, up{layers[i].rows, rank};
    if (rank == 0 || pair.down->shape != down) {
      fail(*file, *pair.down, "[rank, " + std::to_string(layers[i].inputs()) + "] beside this layer");
    }
    if (pair.up->shape != up) fail(*file, *pair.up, shape_text(up) + " beside this layer");
    pair.first_row = layers[i].first_row;
    pair.scale = settings.scale(rank);
    weights->add(layers[i].weight, pair);
  }
  model.constants = std::move(weights);
  if (options.profile.empty() && path_exists(folder / "preprocessor_config.json")) {
    model.preprocess = preprocessing_in(folder, model);
    model.preprocess_error.clear();
  }
  return model;
}

}  // namespace vitrine
