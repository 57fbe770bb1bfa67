#include "model/families.h"

#include <algorithm>
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
  return replaced(std::move(name), '*', std::to_string(parameter.block)) +
         std::string(leaf_name(parameter.leaf));
}

bool is_token_table(Module module) {
  return module == Module::class_token || module == Module::distillation_token ||
         module == Module::registers || module == Module::positions;
}

// Leading ones of tokens and positions carry no meaning.
bool same_shape(Module module, std::span<const uint64_t> found, std::span<const uint64_t> expected) {
  if (is_token_table(module)) {
    while (!found.empty() && found.front() == 1) found = found.subspan(1);
    while (!expected.empty() && expected.front() == 1) expected = expected.subspan(1);
  }
  return std::ranges::equal(found, expected);
}

// The shapes of a parameter's parts; their first axes add up to the parameter's.
std::vector<uint64_t> part_shape(const Parameter& parameter, const ViTConfig& config, size_t part,
                                 size_t parts) {
  std::vector<uint64_t> shape(parameter.shape.dims().begin(), parameter.shape.dims().end());
  if (parts > 1 && parameter.module == Module::qkv) {
    shape[0] = part < 2 ? config.key_columns() : config.value_columns();
  }
  return shape;
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

Naming recognise(const TensorShapes& tensors, const std::string& file) {
  for (const Family* family : all_families()) {
    for (const auto& [name, shape] : tensors) {
      if (!name.ends_with(family->landmarks.front())) continue;
      const std::string prefix = name.substr(0, name.size() - family->landmarks.front().size());
      const bool prefixed = family->find(Module::patch)->parts.front().starts_with('~');
      if (!prefix.empty() && (!prefixed || !prefix.ends_with('.'))) continue;
      const bool all = std::ranges::all_of(family->landmarks, [&](std::string_view landmark) {
        return tensors.contains(prefix + std::string(landmark));
      });
      if (all) return {family, prefix};
    }
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
      !tensors.contains(tensor_name(names->front(), parameter, naming.prefix))) {
    names = &path->alternative;
  }
  std::vector<FilePart> parts;
  for (size_t i = 0; i < names->size(); ++i) {
    const std::string name = tensor_name((*names)[i], parameter, naming.prefix);
    std::vector<uint64_t> shape = part_shape(parameter, config, i, names->size());
    if (name.find('#') != std::string::npos) {
      shape.erase(shape.begin());
      for (uint64_t head = 0; head < config.heads; ++head) {
        parts.push_back({replaced(name, '#', std::to_string(head)), shape});
      }
      continue;
    }
    if (is_token_table(parameter.module)) {
      while (shape.size() < naming.family->token_rank) shape.insert(shape.begin(), 1);
    }
    if (naming.family->linear_patches && shape.size() == 4)
      shape = {shape[0], shape[1] * shape[2] * shape[3]};
    parts.push_back({name, std::move(shape)});
  }
  return parts;
}

std::map<std::string, std::vector<FilePart>> match_tensors(const TensorShapes& tensors,
                                                           const ViTConfig& config, const Naming& naming,
                                                           const std::string& file) {
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
  // Without classes the head is known but not asked for.
  std::vector<std::string> unused(naming.family->unused.begin(), naming.family->unused.end());
  if (config.classes == 0) {
    for (const Module module : {Module::head, Module::distillation_head}) {
      const ModulePath* path = naming.family->find(module);
      if (!path) continue;
      for (const auto* names : {&path->parts, &path->alternative}) {
        for (const std::string_view name : *names)
          unused.insert(unused.end(), {std::string(name) + "weight", std::string(name) + "bias"});
      }
    }
  }
  for (const auto& [name, shape] : tensors) {
    if (used.contains(name)) continue;
    const bool known = std::ranges::any_of(
        unused, [&](const std::string& end) { return name == end || name == naming.prefix + end; });
    if (!known) {
      throw Error(ErrorCode::bad_file, file + ": tensor '" + name + "' " + shape_text(shape) +
                                           " is left over, expected no such tensor in a " +
                                           std::string(naming.family->title) + " of this configuration");
    }
  }
  return found_parts;
}

}  // namespace vitrine
