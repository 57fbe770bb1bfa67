#include "model/files/weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "model/families/foreign.h"
#include "model/families/known_architectures.h"
#include "model/families/wrappers.h"
#include "model/files/adapter.h"
#include "model/files/config_hugging_face.h"
#include "model/files/config_json.h"
#include "model/files/hub_cache.h"
#include "model/files/model_pictures.h"
#include "model/files/stored_layouts.h"
#include "model/files/tensor_files.h"
#include "model/vit/fixed_values.h"
#include "model/vit/init_weights.h"
#include "model/vit/presets.h"
#include "model/vit/relative_table.h"
#include "model/vit/rotary_table.h"
#include "model/vit/vision_transformer.h"
#include "runtime/util/json.h"
#include "runtime/util/paths.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

void require_shape(const std::string& name, const Shape& known, const Shape& asked) {
  if (known == asked) return;
  throw Error(ErrorCode::bad_file, "constant '" + name + "' has shape " + known.to_string() +
                                       ", the graph expects " + asked.to_string());
}

[[noreturn]] void no_such_constant(const std::string& name) {
  throw Error(ErrorCode::bad_file,
              "the graph asks for a constant '" + name + "' that the model does not have");
}

ConstantPart part_of(std::span<const float> values) { return {DType::f32, std::as_bytes(values)}; }

PositionRule position_rule(const ViTConfig& c) {
  return {c.position_resize, c.position_offset, c.detection_tokens, c.position_square};
}

// Of positions for another grid of patches than the configuration's.
Shape shape_for(const Parameter& parameter, const ViTConfig& config, Grid grid) {
  if (grid == grid_of(config)) return parameter.shape;
  return {parameter.shape[0] - config.patches() + grid.patches(), parameter.shape[1]};
}

class RandomWeights : public ConstantSource {
 public:
  RandomWeights(const ModuleBase& module, uint64_t seed) : config_(module.config()), seed_(seed) {
    for (const Parameter& parameter : module.parameters()) parameters_.emplace(parameter.name, parameter);
  }

  ConstantParts find(const std::string& name, const Shape& shape, DType) override {
    const PositionsName other = positions_named(name);
    const auto found = parameters_.find(other.parameter.empty() ? name : other.parameter);
    if (found == parameters_.end()) no_such_constant(name);
    values_ = drawn(found->second);
    if (other.parameter.empty()) {
      require_shape(name, found->second.shape, shape);
    } else {
      require_shape(name, shape_for(found->second, config_, other.grid), shape);
      values_ = resize_positions(values_, config_.dim, grid_of(config_), other.grid, position_rule(config_));
    }
    return {part_of(values_)};
  }

 private:
  std::vector<float> drawn(const Parameter& parameter) const {
    if (parameter.fixed)
      return fixed_values(parameter, config_, [&](const Parameter& other) { return drawn(other); });
    std::vector<float> values(parameter.shape.elements());
    init_parameter(parameter, config_, seed_, values);
    return values;
  }

  ViTConfig config_;
  uint64_t seed_;
  std::map<std::string, Parameter> parameters_;
  std::vector<float> values_;  // what find() handed out last
};

DType dtype_of(const TensorInfo& tensor, const std::string& file) {
  switch (tensor.dtype) {
    case FileDType::f32:
      return DType::f32;
    case FileDType::f16:
      return DType::f16;
    case FileDType::bf16:
      return DType::bf16;
    default:
      throw Error(ErrorCode::bad_file, file + ": tensor '" + tensor.name + "' is of type " +
                                           std::string(name_of(tensor.dtype)) +
                                           ", expected F32, F16 or BF16");
  }
}

template <typename Bits>
bool any_nan(std::span<const std::byte> bytes, Bits infinity) {
  bool found = false;
  for (size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    found |= static_cast<Bits>(bits << 1) > static_cast<Bits>(infinity << 1);  // without the sign
  }
  return found;
}

bool has_nan(const ConstantPart& part) {
  switch (part.dtype) {
    case DType::f32:
      return any_nan<uint32_t>(part.bytes, 0x7F800000u);
    case DType::f16:
      return any_nan<uint16_t>(part.bytes, 0x7C00u);
    case DType::bf16:
      return any_nan<uint16_t>(part.bytes, 0x7F80u);
    case DType::u32:
      break;
  }
  return false;
}

class FileWeights : public ConstantSource {
 public:
  // `stored_grid`: the grid of patches that learned positions in the file are for.
  FileWeights(std::shared_ptr<const TensorFiles> files, const ModuleBase& module,
              const std::map<std::string, std::vector<FilePart>>& parts, Grid stored_grid, bool channels_last,
              Warn warn)
      : files_(std::move(files)),
        config_(module.config()),
        stored_grid_(stored_grid),
        channels_last_(channels_last),
        warn_(std::move(warn)) {
    const std::string file = shown(files_->path());
    for (const Parameter& parameter : module.parameters()) {
      Constant constant{parameter, {}};
      if (const auto found = parts.find(parameter.name); found != parts.end()) {
        for (const FilePart& part : found->second) {
          if (part.name.empty()) {
            constant.parts.push_back({.rows = part.shape.front()});
            zeros_.resize(std::max<size_t>(zeros_.size(), part.shape.front()));
            continue;
          }
          constant.parts.push_back(
              {files_->find(part.name), part.first_row, part.rows, part.first_column, part.columns});
          dtype_of(*constant.parts.back().stored->info, file);
        }
      }
      constants_.emplace(parameter.name, std::move(constant));
    }
  }

  ConstantParts find(const std::string& name, const Shape& shape, DType) override {
    const PositionsName other = positions_named(name);
    const auto found = constants_.find(other.parameter.empty() ? name : other.parameter);
    if (found == constants_.end()) no_such_constant(name);
    const Constant& constant = found->second;
    const Grid grid = other.parameter.empty() ? grid_of(config_) : other.grid;
    require_shape(name, shape_for(constant.parameter, config_, grid), shape);
    if (constant.parameter.fixed) {
      values_ = fixed_values(constant.parameter, config_,
                             [&](const Parameter& asked) { return stored_values(asked.name); });
      return {part_of(values_)};
    }
    ConstantParts parts;
    for (const auto& [stored, first_row, rows, first_column, columns] : constant.parts) {
      if (!stored) {
        parts.push_back(part_of(std::span(zeros_).first(rows)));
        continue;
      }
      parts.push_back({dtype_of(*stored->info, shown(files_->path())), stored->bytes()});
      if (rows) {
        const size_t row = parts.back().bytes.size() / rows_of(stored->info->shape);
        parts.back().bytes = parts.back().bytes.subspan(first_row * row, rows * row);
      }
      if (warn_ && has_nan(parts.back()) && warned_.insert(stored->info->name).second) {
        warn_(shown(stored->file->path()) + ": tensor '" + stored->info->name +
              "' holds a NaN, expected finite weights");
      }
      if (columns) {  // a part that is the only one
        values_ = columns_of(stored->floats(), stored->info->shape.back(), first_column, columns);
        return {part_of(values_)};
      }
    }
    const bool positions = constant.parameter.module == Module::positions ||
                           constant.parameter.module == Module::block_positions;
    const bool sum = positions && constant.parts.size() == 2;
    if (positions && (sum || stored_grid_ != grid)) {
      values_ = floats_of(constant.parts[0]);
      if (sum) values_ = sums_of(values_, floats_of(constant.parts[1]), config_.dim);
      // Where both axes of a square are resampled, a grid that is a part of it isn't the stored one.
      if (stored_grid_ != grid || config_.position_square)
        values_ = resize_positions(values_, config_.dim, stored_grid_, grid, position_rule(config_));
      return {part_of(values_)};
    }
    const Module module = constant.parameter.module;
    if ((module == Module::relative_height || module == Module::relative_width) &&
        constant.parts.size() == 1) {
      const StoredTensor& stored = *constant.parts.front().stored;
      if (stored.info->shape[0] != shape[0]) {
        values_ = resize_relative(stored.floats(), stored.info->shape[0], shape[0]);
        return {part_of(values_)};
      }
    }
    if (constant.parameter.module == Module::patch && constant.parameter.leaf == Leaf::weight &&
        constant.parts.front().stored->info->shape.size() == 5) {
      const StoredTensor& stored = *constant.parts.front().stored;
      values_ = frames_first(stored.floats(), stored.info->shape);
      return {part_of(values_)};
    }
    if (channels_last_ && constant.parameter.module == Module::patch &&
        constant.parameter.leaf == Leaf::weight) {
      values_ = channels_first(constant.parts.front().stored->floats(), shape);
      return {part_of(values_)};
    }
    return parts;
  }

 private:
  struct Part {
    const StoredTensor* stored = nullptr;  // none: zeros
    uint64_t first_row = 0, rows = 0;      // 0 rows: all
    uint64_t first_column = 0, columns = 0;
  };

  static std::vector<float> floats_of(const Part& part) {
    std::vector<float> floats = part.stored->floats();
    if (part.rows == 0) return floats;
    const size_t row = floats.size() / rows_of(part.stored->info->shape);
    const auto first = floats.begin() + static_cast<std::ptrdiff_t>(part.first_row * row);
    return {first, first + static_cast<std::ptrdiff_t>(part.rows * row)};
  }

  // Of a parameter that is one tensor.
  std::vector<float> stored_values(const std::string& name) const {
    const auto found = constants_.find(name);
    if (found == constants_.end() || found->second.parts.empty())
      throw Error(ErrorCode::bad_file,
                  shown(files_->path()) + ": found no '" + name + "', which positions are computed from");
    return found->second.parts.front().stored->floats();
  }

  struct Constant {
    Parameter parameter;
    std::vector<Part> parts;
  };
  std::shared_ptr<const TensorFiles> files_;
  ViTConfig config_;
  Grid stored_grid_;
  bool channels_last_;
  Warn warn_;
  std::map<std::string, Constant> constants_;
  std::set<std::string> warned_;
  std::vector<float> zeros_;
  std::vector<float> values_;  // what find() handed out last of a parameter that isn't the file's own bytes
};

// What the overrides say of sizes that the tensors leave open.
InferHints hints_of(const std::vector<std::string>& set) {
  ViTConfig probe;
  probe.heads = probe.image_height = probe.image_width = 0;
  InferHints hints;
  for (const std::string& assignment : set) {
    set_field(probe, assignment);
    if (assignment.starts_with("activation=")) hints.activation = probe.activation;
  }
  for (const auto& field : fields_of(probe)) {
    const auto says = [&](const std::string& assignment) {
      return assignment.starts_with(field.first + "=");
    };
    if (std::ranges::any_of(set, says)) hints.fields.push_back(field);
  }
  hints.heads = probe.heads;
  hints.image_height = probe.image_height;
  hints.image_width = probe.image_width;
  return hints;
}

Model open_preset(const ModelOptions& options) {
  Model model{options.arch, "random", architecture(options.arch), nullptr};
  for (const std::string& assignment : options.set) set_field(model.config, assignment);
  model.config.validate("--arch " + options.arch, ErrorCode::usage);
  decide_pictures(model, options, false, {});
  model.constants = random_weights(model.config, options.seed);
  return model;
}

// A training that is validated leaves its models in folders of its own.
std::filesystem::path best_of(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name, ignored); };
  const bool own =
      has("model.safetensors") || has("model.safetensors.index.json") || has("adapter_config.json");
  const bool best = has("best/model.safetensors") || has("best/adapter_config.json");
  return best && (!own || has("training.json")) ? folder / "best" : folder;
}

TensorShapes shapes_of(const TensorFiles& files) {
  TensorShapes shapes;
  for (const StoredTensor& tensor : files.tensors()) shapes.emplace(tensor.info->name, tensor.info->shape);
  return shapes;
}

// Before weights are looked at. What it names but can't be computed shows in the tensors, which say what of
// it that is.
void check_config(const nlohmann::json& json, const std::filesystem::path& folder) {
  try {
    check_model_type(json, shown(folder / "config.json"));
  } catch (const Error&) {
    std::optional<TensorFiles> files;
    try {
      files.emplace(folder);
    } catch (const Error&) {
      // What is wrong with them, too, isn't said before the configuration is right.
    }
    if (files) refuse_foreign(shapes_of(*files), shown(files->path()));
    throw;
  }
}

// Files hold them in bf16, which are other numbers than those that they were rounded from.
void check_periods(const TensorFiles& files, const std::string& name, ViTConfig& config,
                   const std::string& file) {
  const StoredTensor* stored = files.find(name);
  if (!stored) return;
  const std::vector<float> found = stored->floats();
  for (const bool rounded : {false, true}) {
    config.rotary_rounded = rounded;
    const std::vector<float> known = rotary_periods(config);
    const bool same = std::ranges::equal(
        found, known, [&](float a, float b) { return std::abs(a - b) <= (rounded ? 0 : 1e-5f * b); });
    if (same) return;
  }
  throw Error(ErrorCode::bad_file, file + ": '" + name + "' holds other periods than the powers of " +
                                       std::to_string(static_cast<uint64_t>(config.rotary_base)) +
                                       ", expected those, in full or rounded to bf16");
}

Model open_checkpoint(const ModelOptions& options, Warn warn) {
  const InferHints hints = hints_of(options.set);
  const std::filesystem::path path = find_checkpoint(options.model, warn);
  if (is_adapter(path)) {
    if (options.is_base) {
      throw Error(ErrorCode::bad_file,
                  "the base model " + shown(path) +
                      " is an adapter itself, expected a model (vitrine merge makes one)");
    }
    return open_adapter(options, path, warn);
  }
  const std::filesystem::path config_path = path / "config.json";
  const bool has_config = is_folder(path) && path_exists(config_path);
  nlohmann::json json;
  if (has_config) {
    json = read_json(config_path);
    check_config(json, path);
  }
  const auto files = std::make_shared<const TensorFiles>(path);
  const std::string file = shown(files->path());
  TensorShapes all = shapes_of(*files);
  const bool is_part = has_config && holds_more_than_a_tower(json, shown(config_path));
  if (!is_part) refuse_foreign(all, file);
  const Unwrapped unwrapped = unwrap(std::move(all), file);
  const TensorShapes& shapes = unwrapped.tensors;
  const Naming naming = recognise(
      shapes, file, has_config ? said_family(json, shown(config_path)) : family_within(unwrapped.outer));
  Model model{options.model.string(), std::string(naming.family->name), {}, nullptr};
  ConfigRemarks remarks;
  if (has_config) {
    model.config = read_config(json, shapes, naming, shown(config_path), hints, &remarks);
  } else if (!naming.family->told_by_config.empty()) {
    throw Error(ErrorCode::bad_file, file + ": this is a " + std::string(naming.family->title) +
                                         ", of which " + std::string(naming.family->told_by_config) +
                                         " told by a config.json alone, expected one beside it");
  } else {
    model.config = infer_config(shapes, naming, file, hints);
    fill_unseen(model.config, naming, hints, file, remarks.assumed);
  }
  model.untrained = std::move(remarks.untrained);
  std::string origin = has_config ? shown(config_path) : file;
  for (const std::string& assignment : options.set) {
    set_field(model.config, assignment);
    origin += " with --set " + assignment;
  }
  model.config.validate(origin);
  if (!naming.family->periods.empty() && model.config.rotary != Rotary::none)
    check_periods(*files, unwrapped.name_in_file(std::string(naming.family->periods)), model.config, file);
  const Grid own_grid = grid_of(model.config);
  Grid stored_grid = naming.family->position_grid ? stored_positions(shapes, naming) : own_grid;
  if (stored_grid.height == 0) stored_grid = own_grid;  // rows of a matrix, as Vitrine writes them
  std::vector<std::string> left_over;
  auto parts = match_tensors(shapes, model.config, naming, file, is_part ? &left_over : nullptr);
  for (auto& [parameter, of_it] : parts) {
    for (FilePart& part : of_it) {
      if (!part.name.empty()) part.name = unwrapped.name_in_file(part.name);  // else zeros, of no tensor
    }
  }
  std::vector<std::string> passed_over = unwrapped.passed_over;
  for (const std::string& name : left_over) passed_over.push_back(unwrapped.name_in_file(name));
  if (!passed_over.empty()) {
    const std::string under = unwrapped.outer + (left_over.empty() ? "" : naming.prefix);
    remarks.assumed.push_back(file + ": only what lies under " + in_quotes(under) + " is read, " +
                              std::to_string(passed_over.size()) +
                              " other tensors are passed over, such as " + in_quotes(passed_over.front()));
  }
  if (model.config.positions == Positions::learned) model.stored_grid = stored_grid;
  if (has_config) model.labels = read_labels(json, model.config.classes, shown(config_path));
  model.known_labels = known_labels(has_config ? &json : nullptr, model.family, model.config.classes);
  model.path = path;
  model.naming = naming;
  decide_pictures(model, options, naming.family->whole_patches, warn);
  if (model.family == "hf_siglip" && model.config.position_resize == PositionResize::nearest) {
    const Grid grid = grid_of(model.config);
    for (const uint64_t side : std::set{grid.height, grid.width}) {
      if (library_moves_places(side))
        remarks.assumed.push_back(
            file + ": of " + std::to_string(side) +
            " patches a side, transformers' rounding gives some the position of the one "
            "in front of them; here each has its own");
    }
  }
  if (warn) std::ranges::for_each(remarks.assumed, warn);
  const bool of_a_grid =
      model.config.relative_bias == RelativeBias::own || model.config.relative_bias == RelativeBias::shared;
  if (of_a_grid && model.config.relative_hidden == 0 && grid_of(model.config) != own_grid) {
    throw Error(ErrorCode::bad_file, file + ": its relative positions are for " +
                                         sides(own_grid.height, own_grid.width) + " patches, and images of " +
                                         sides(model.config.image_height, model.config.image_width) +
                                         " were to come, for which they can't be resampled yet");
  }
  model.constants = std::make_unique<FileWeights>(files, VisionTransformer(model.config), parts, stored_grid,
                                                  naming.family->channels_last, std::move(warn));
  return model;
}

}  // namespace

// A model on disk goes before one in Hugging Face's cache.
std::filesystem::path find_checkpoint(const std::filesystem::path& model, const Warn& warn) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(model, ignored);
  return there || !is_hub_name(model.string()) ? best_of(model) : find_in_hub_cache(model.string(), warn);
}

std::unique_ptr<ConstantSource> random_weights(const ModuleBase& module, uint64_t seed) {
  return std::make_unique<RandomWeights>(module, seed);
}

std::unique_ptr<ConstantSource> random_weights(const ViTConfig& config, uint64_t seed) {
  return random_weights(VisionTransformer(config), seed);
}

std::unique_ptr<ConstantSource> part_weights(std::shared_ptr<const TensorFiles> files,
                                             const ModuleBase& module,
                                             const std::map<std::string, std::vector<FilePart>>& parts,
                                             Warn warn) {
  return std::make_unique<FileWeights>(std::move(files), module, parts, grid_of(module.config()), false,
                                       std::move(warn));
}

std::unique_ptr<ConstantSource> file_weights(const ModuleBase& module, const std::filesystem::path& path,
                                             const std::string& prefix, Warn warn) {
  auto files = std::make_shared<const TensorFiles>(path);
  std::map<std::string, std::vector<FilePart>> parts;
  for (const Parameter& parameter : module.parameters()) {
    if (parameter.fixed) continue;
    const std::string name = prefix + parameter.name;
    const StoredTensor* stored = files->find(name);
    const std::string expected = parameter.shape.to_string();
    if (!stored) {
      throw Error(ErrorCode::bad_file,
                  shown(files->path()) + ": found no tensor '" + name + "', expected " + expected);
    }
    // Tokens and positions are stored with ones in front of their shape.
    std::span<const uint64_t> shape = stored->info->shape;
    while (shape.size() > parameter.shape.rank() && shape.front() == 1) shape = shape.subspan(1);
    if (!std::ranges::equal(shape, parameter.shape.dims())) {
      throw Error(ErrorCode::bad_file, shown(files->path()) + ": found '" + name + "' of shape " +
                                           shape_text(stored->info->shape) + ", expected " + expected);
    }
    parts[parameter.name] = {{name, stored->info->shape}};
  }
  return std::make_unique<FileWeights>(std::move(files), module, parts, grid_of(module.config()), false,
                                       std::move(warn));
}

Labels answer_labels(const Model& model, const Warn& warn) {
  if (!model.labels.empty()) return model.labels;
  const std::string remark = model.known_labels.remark();
  if (warn && !remark.empty()) warn(remark);
  return Labels(model.known_labels.names());
}

Model open_model(const ModelOptions& options, Warn warn) {
  if (options.model.empty() == options.arch.empty()) {
    throw Error(ErrorCode::usage, options.arch.empty()
                                      ? "found neither --model nor --arch, expected one of the two"
                                      : "found both --model and --arch, expected one of the two");
  }
  return options.arch.empty() ? open_checkpoint(options, std::move(warn)) : open_preset(options);
}

}  // namespace vitrine
