#include "model/families/families.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace vitrine {
namespace {

std::string replaced(std::string text, char mark, const std::string& by) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size())) {
    text.replace(at, 1, by);
  }
  return text;
}

std::string_view leaf_name(Leaf leaf) {
  return leaf == Leaf::weight ? "weight" : leaf == Leaf::bias ? "bias" : "";
}

std::string tensor_name(std::string_view path, const Parameter& parameter, const std::string& prefix) {
  std::string name = path.starts_with('~') ? prefix + std::string(path.substr(1)) : std::string(path);
  name = replaced(std::move(name), '%', std::to_string(parameter.branch));
  return replaced(std::move(name), '*', std::to_string(parameter.block)) +
         std::string(leaf_name(parameter.leaf));
}

bool is_token_table(Module module) {
  return module == Module::class_token || module == Module::distillation_token ||
         module == Module::registers || module == Module::detection_tokens || module == Module::positions ||
         module == Module::block_positions || module == Module::pool_latent || module == Module::rotary_class;
}

// Leading ones of tokens and positions carry no meaning.
bool same_shape(Module module, std::span<const uint64_t> found, std::span<const uint64_t> expected) {
  if (is_token_table(module)) {
    while (!found.empty() && found.front() == 1) found = found.subspan(1);
    while (!expected.empty() && expected.front() == 1) expected = expected.subspan(1);
  }
  return std::ranges::equal(found, expected);
}

// Its patch projection is [dim, channels, frames, height, width].
bool sees_videos(const Naming& naming) { return naming.family->name == "hf_video"; }

// The shapes of a parameter's parts; their first axes add up to the parameter's.
std::vector<uint64_t> part_shape(const Parameter& parameter, const ViTConfig& config, size_t part,
                                 size_t parts) {
  std::vector<uint64_t> shape(parameter.shape.dims().begin(), parameter.shape.dims().end());
  if (parts > 1 && parameter.module == Module::qkv) {
    shape[0] = part < 2 ? config.key_columns() : config.value_columns();
  } else if (parts > 1 && (parameter.module == Module::fc1 || parameter.module == Module::pool_kv)) {
    shape[0] /= parts;
  }
  return shape;
}

// Whether the file has the biases that go by names of their own, and not the leaf of the weight's.
bool has_lone_biases(const ModulePath& path, const Parameter& parameter, const Naming& naming,
                     const TensorShapes& tensors) {
  if (path.biases.empty()) return false;
  Parameter lone = parameter;
  lone.leaf = Leaf::whole;
  return tensors.contains(tensor_name(path.biases.front(), lone, naming.prefix));
}

std::vector<FilePart> lone_biases(const ModulePath& path, Parameter parameter, const ViTConfig& config,
                                  const Naming& naming) {
  std::vector<FilePart> parts;
  parameter.leaf = Leaf::whole;
  for (size_t i = 0; i < path.biases.size(); ++i) {
    const std::string_view bias = path.biases[i];
    parts.push_back({bias.empty() ? std::string() : tensor_name(bias, parameter, naming.prefix),
                     part_shape(parameter, config, i, path.biases.size())});
  }
  return parts;
}

// Of keys or values that several heads have in common: those of each of the heads, one behind the other. None
// where the tensor has all of them.
std::vector<FilePart> shared_heads(const std::string& name, const std::vector<uint64_t>& expected,
                                   uint64_t width, const TensorShapes& tensors) {
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.empty()) return {};
  const uint64_t rows = found->second.front();
  if (rows == 0 || width == 0 || rows >= expected.front() || rows % width != 0 ||
      expected.front() % rows != 0)
    return {};
  std::vector<FilePart> parts;
  std::vector<uint64_t> shape = expected;
  shape.front() = rows;
  for (uint64_t head = 0; head < rows / width; ++head)
    parts.insert(parts.end(), expected.front() / rows, {name, shape, head * width, width});
  return parts;
}

// Of one tensor for all three, whose keys' part is not used.
std::vector<FilePart> around_key_bias(const std::string& name, const ViTConfig& config) {
  const uint64_t keys = config.key_columns(), values = config.value_columns();
  const std::vector<uint64_t> whole{2 * keys + values};
  return {{name, whole, 0, keys}, {{}, {keys}}, {name, whole, 2 * keys, values}};
}

// Of a product that a block's MLP and attention share, one's rows or columns.
FilePart part_of_both(std::string name, const Parameter& parameter, const ViTConfig& config) {
  const uint64_t hidden = config.mlp_width(), values = config.value_columns();
  std::vector<uint64_t> shape(parameter.shape.dims().begin(), parameter.shape.dims().end());
  const bool behind = parameter.module == Module::projection || parameter.module == Module::fc2;
  if (!behind) {
    const bool mlp = parameter.module == Module::fc1;
    shape[0] = hidden + 2 * config.key_columns() + values;
    return {.name = std::move(name),
            .shape = shape,
            .first_row = mlp ? 0 : hidden,
            .rows = mlp ? hidden : shape[0] - hidden};
  }
  if (parameter.leaf == Leaf::bias) return {.name = std::move(name), .shape = shape};
  const bool mlp = parameter.module == Module::fc2;
  shape[1] = values + hidden;
  return {.name = std::move(name),
          .shape = shape,
          .first_column = mlp ? values : 0,
          .columns = mlp ? hidden : values};
}

bool is_of_both(const Parameter& parameter, const ModulePath& path,
                const std::vector<std::string_view>& names) {
  if (parameter.module == Module::qkv || parameter.module == Module::fc1) return true;
  const bool behind = parameter.module == Module::projection || parameter.module == Module::fc2;
  return behind && &names == &path.alternative;
}

// What a file of this family may hold besides the tensors of this model.
std::vector<std::string> unused_names(const ViTConfig& config, const Naming& naming) {
  std::vector<std::string> unused(naming.family->unused.begin(), naming.family->unused.end());
  std::vector<Module> spare = naming.family->spare;
  if (config.classes == 0) spare.insert(spare.end(), {Module::head, Module::distillation_head});
  for (const Module module : spare) {
    const ModulePath* path = naming.family->find(module);
    if (!path) continue;
    for (const auto* names : {&path->parts, &path->alternative, &path->biases}) {
      for (const std::string_view name : *names) {
        const std::string bare(name.substr(name.starts_with('~') ? 1 : 0));
        unused.insert(unused.end(), {bare, bare + "weight", bare + "bias"});
      }
    }
  }
  return unused;
}

bool is_unused(std::string_view name, const std::vector<std::string>& unused, std::string_view prefix) {
  const auto fits = [](std::string_view found, std::string_view known) {
    const size_t star = known.find('*');
    if (star == known.npos) return found == known;
    const std::string_view front = known.substr(0, star), back = known.substr(star + 1);
    return found.size() >= front.size() + back.size() && found.starts_with(front) && found.ends_with(back);
  };
  return std::ranges::any_of(unused, [&](const std::string& known) {
    return fits(name, known) || (name.starts_with(prefix) && fits(name.substr(prefix.size()), known));
  });
}

}  // namespace

const ModulePath* Family::find(Module module) const {
  for (const ModulePath& path : paths) {
    if (path.module == module) return &path;
  }
  return nullptr;
}

const Family& family_named(std::string_view name) {
  for (const Family* family : all_families()) {
    if (family->name == name) return *family;
  }
  throw Error(ErrorCode::usage, "there is no family of models named '" + std::string(name) + "'");
}

std::string shape_text(std::span<const uint64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

uint64_t whole_root(uint64_t n) {
  const uint64_t root = static_cast<uint64_t>(std::llround(std::sqrt(static_cast<double>(n))));
  return root * root == n ? root : 0;
}

bool holds_nothing(std::span<const uint64_t> shape) {
  return std::ranges::find(shape, uint64_t{0}) != shape.end();
}

bool has_landmarks(const TensorShapes& tensors, const Family& family, const std::string& prefix) {
  return std::ranges::all_of(family.landmarks, [&](std::string_view landmark) {
    return tensors.contains(prefix + std::string(landmark));
  });
}

std::string_view family_within(std::string_view outer) {
  for (const Family* family : all_families()) {
    if (!family->outer.empty() && family->outer == outer) return family->name;
  }
  return {};
}

Naming recognise(const TensorShapes& tensors, const std::string& file, std::string_view said) {
  const auto find = [&](const Family& family, bool by_fit) -> std::optional<Naming> {
    for (const auto& [name, shape] : tensors) {
      if (!name.ends_with(family.landmarks.front())) continue;
      const std::string prefix = name.substr(0, name.size() - family.landmarks.front().size());
      const bool prefixed = family.find(Module::patch)->parts.front().starts_with('~');
      if (!prefix.empty() && (!prefixed || !prefix.ends_with('.'))) continue;
      if (!has_landmarks(tensors, family, prefix)) continue;
      if (!by_fit || !family.fits || family.fits(tensors, prefix))
        return Naming{&family, prefix, tensors.contains("blocks.0.gamma_1")};
    }
    return std::nullopt;
  };
  if (!said.empty()) {
    if (const auto naming = find(family_named(said), false)) return *naming;
  }
  for (const Family* family : all_families()) {
    if (const auto naming = find(*family, true)) return *naming;
  }
  std::string expected;
  for (const Family* family : all_families()) {
    expected += (expected.empty() ? "'" : ", '") + std::string(family->landmarks.front()) + "' (" +
                std::string(family->title) + ")";
  }
  const std::string found =
      tensors.empty() ? "no tensors" : "tensors such as '" + tensors.begin()->first + "'";
  throw Error(ErrorCode::bad_file, file + ": found " + found + ", expected one of " + expected);
}

std::vector<FilePart> file_parts(const Parameter& parameter, const ViTConfig& config, const Naming& naming,
                                 const TensorShapes& tensors) {
  const ModulePath* path = naming.family->find(parameter.module);
  if (!path) return {};
  const std::vector<std::string_view>* names = &path->parts;
  if (!path->alternative.empty() &&
      tensors.contains(tensor_name(path->alternative.front(), parameter, naming.prefix))) {
    names = &path->alternative;
  }
  if (parameter.leaf == Leaf::bias && has_lone_biases(*path, parameter, naming, tensors))
    return lone_biases(*path, parameter, config, naming);
  if (naming.family->fused_branches && is_of_both(parameter, *path, *names))
    return {part_of_both(tensor_name(names->front(), parameter, naming.prefix), parameter, config)};
  const bool no_key_bias =
      parameter.module == Module::qkv && parameter.leaf == Leaf::bias && !config.key_bias;
  if (no_key_bias && names->size() == 1)
    return around_key_bias(tensor_name(names->front(), parameter, naming.prefix), config);
  if (parameter.module == Module::stem) {  // all of them are called as timm does
    const std::string leaf = parameter.name.substr(canonical_path(Module::stem).size() + 1);
    return {
        {std::string(names->front()) + leaf, {parameter.shape.dims().begin(), parameter.shape.dims().end()}}};
  }
  std::vector<FilePart> parts;
  for (size_t i = 0; i < names->size(); ++i) {
    std::vector<uint64_t> shape = part_shape(parameter, config, i, names->size());
    if (no_key_bias && i == 1) {
      parts.push_back({{}, shape});
      continue;
    }
    const std::string name = tensor_name((*names)[i], parameter, naming.prefix);
    if (name.find('#') != std::string::npos) {
      shape.erase(shape.begin());
      for (uint64_t head = 0; head < config.heads; ++head) {
        parts.push_back({replaced(name, '#', std::to_string(head)), shape});
      }
      continue;
    }
    const bool relative =
        parameter.module == Module::relative_height || parameter.module == Module::relative_width;
    const auto stored = tensors.find(name);
    // What Vitrine has written are matrices as they are here.
    const bool is_matrix = stored != tensors.end() && stored->second.size() == 2;
    if (relative && is_matrix) shape[0] = stored->second[0];  // for whichever grid: it is resampled
    if (parameter.module == Module::neck_linear && !is_matrix) shape.insert(shape.end(), {1, 1});
    if (parameter.module == Module::positions && naming.family->spare_positions && !is_matrix) {
      shape = {1, naming.family->spare_positions + stored_positions(tensors, naming).patches(), config.dim};
    } else if (parameter.module == Module::positions && naming.family->position_grid && !is_matrix) {
      const Grid grid = stored_positions(tensors, naming);
      shape = names->size() == 2 ? std::vector{uint64_t{1}, i == 0 ? grid.height : grid.width, config.dim}
                                 : std::vector{uint64_t{1}, grid.height, grid.width, config.dim};
    } else if (parameter.module == Module::block_positions && name.find("blocks.") == name.npos) {
      // Those of all blocks but the first, one behind the other.
      const uint64_t rows = shape[0];
      parts.push_back({name, {config.depth - 1, 1, rows, config.dim}, (parameter.block - 1) * rows, rows});
      continue;
    } else if (is_token_table(parameter.module)) {
      while (shape.size() < naming.family->token_rank) shape.insert(shape.begin(), 1);
    }
    if (parameter.module == Module::qkv && i > 0) {
      if (auto repeated = shared_heads(name, shape, config.head_key_width(), tensors); !repeated.empty()) {
        parts.insert(parts.end(), repeated.begin(), repeated.end());
        continue;
      }
    }
    if (sees_videos(naming) && parameter.module == Module::patch && shape.size() == 4 &&
        stored != tensors.end() && stored->second.size() == 5 && stored->second[2] != 0) {
      const uint64_t frames = stored->second[2];
      shape = {shape[0], shape[1] / frames, frames, shape[2], shape[3]};
    }
    if (naming.family->linear_patches && parameter.module == Module::patch && shape.size() == 4)
      shape = {shape[0], shape[1] * shape[2] * shape[3]};
    FilePart part{name, std::move(shape)};
    if (const uint64_t spare = naming.family->spare_positions;
        spare && parameter.module == Module::positions && part.shape.size() == 3) {
      part.first_row = spare;
      part.rows = part.shape[1] - spare;
    }
    if (const Share& share = path->share; share.of > 1) {
      part.rows = part.shape[0];
      const uint64_t unit = part.rows / (share.end - share.begin);
      part.first_row = share.begin * unit;
      part.shape[0] = share.of * unit;
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

Grid stored_positions(const TensorShapes& tensors, const Naming& naming) {
  const ModulePath* path = naming.family->find(Module::positions);
  const auto shape_of = [&](std::string_view name) {
    const auto found = tensors.find(naming.prefix + std::string(name.substr(name.starts_with('~') ? 1 : 0)));
    return found == tensors.end() ? std::vector<uint64_t>{} : found->second;
  };
  const auto whole = shape_of(path->parts.front());
  if (whole.size() == 4) return {whole[1], whole[2]};
  if (const uint64_t spare = naming.family->spare_positions; spare && whole.size() == 3 && whole[1] > spare) {
    const uint64_t side = whole_root(whole[1] - spare);
    return {side, side};
  }
  if (path->alternative.size() != 2) return {};
  const auto rows = shape_of(path->alternative[0]), columns = shape_of(path->alternative[1]);
  if (rows.size() != 3 || columns.size() != 3) return {};
  return {rows[1], columns[1]};
}

std::map<std::string, std::vector<FilePart>> match_tensors(const TensorShapes& tensors,
                                                           const ViTConfig& config, const Naming& naming,
                                                           const std::string& file,
                                                           std::vector<std::string>* beside) {
  std::map<std::string, std::vector<FilePart>> found_parts;
  std::set<std::string, std::less<>> used;
  for (const Parameter& parameter : parameters_of(config)) {
    if (!parameter.learned()) continue;
    const std::vector<FilePart> parts = file_parts(parameter, config, naming, tensors);
    if (parts.empty()) {
      throw Error(ErrorCode::bad_file, file + ": the configuration asks for '" + parameter.name + "' " +
                                           parameter.shape.to_string() + ", which a " +
                                           std::string(naming.family->title) + " checkpoint has no name for");
    }
    for (const FilePart& part : parts) {
      if (part.name.empty()) continue;
      const auto found = tensors.find(part.name);
      if (found == tensors.end()) {
        throw Error(ErrorCode::bad_file, file + ": tensor '" + part.name + "' is missing, expected shape " +
                                             shape_text(part.shape));
      }
      if (!same_shape(parameter.module, found->second, part.shape)) {
        throw Error(ErrorCode::bad_file, file + ": tensor '" + part.name + "' has shape " +
                                             shape_text(found->second) + ", expected " +
                                             shape_text(part.shape));
      }
      used.insert(part.name);
    }
    found_parts.emplace(parameter.name, parts);
  }
  const std::vector<std::string> unused = unused_names(config, naming);
  for (const auto& [name, shape] : tensors) {
    if (used.contains(name) || holds_nothing(shape) || is_unused(name, unused, naming.prefix)) continue;
    if (beside && !naming.prefix.empty() && !name.starts_with(naming.prefix)) {
      beside->push_back(name);
    } else {
      throw Error(ErrorCode::bad_file, file + ": tensor '" + name + "' " + shape_text(shape) +
                                           " is left over, expected no such tensor in a " +
                                           std::string(naming.family->title) + " of this configuration");
    }
  }
  return found_parts;
}

}  // namespace vitrine
