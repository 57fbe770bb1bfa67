#include "model/files/bare_attention.h"

#include <algorithm>
#include <array>

#include "model/families/families.h"
#include "model/files/tensor_files.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr std::array<std::string_view, 4> leaves{"qkv.weight", "qkv.bias", "proj.weight", "proj.bias"};

// What stands before the leaf names, or nothing when some tensor isn't an attention's.
std::optional<std::string> common_prefix(const TensorFiles& files) {
  std::optional<std::string> prefix;
  for (const StoredTensor& tensor : files.tensors()) {
    const std::string& name = tensor.info->name;
    const auto leaf = std::ranges::find_if(leaves, [&](std::string_view end) { return name.ends_with(end); });
    if (leaf == leaves.end()) return std::nullopt;
    const std::string front = name.substr(0, name.size() - leaf->size());
    if ((!front.empty() && !front.ends_with('.')) || (prefix && *prefix != front)) return std::nullopt;
    prefix = front;
  }
  return prefix && files.find(*prefix + "qkv.weight") ? prefix : std::nullopt;
}

}  // namespace

std::optional<BareAttention> open_bare_attention(const std::filesystem::path& path,
                                                 const std::vector<std::string>& set, Warn warn) {
  const TensorFiles files(path);
  const std::optional<std::string> prefix = common_prefix(files);
  if (!prefix) return std::nullopt;
  const std::string file = shown(files.path());
  const auto matrix = [&](const std::string& leaf) {
    const StoredTensor* tensor = files.find(*prefix + leaf);
    if (tensor && tensor->info->shape.size() != 2) {
      throw Error(ErrorCode::bad_file, file + ": found '" + tensor->info->name + "' of shape " +
                                           shape_text(tensor->info->shape) + ", expected a matrix");
    }
    return tensor;
  };
  const StoredTensor *qkv = matrix("qkv.weight"), *proj = matrix("proj.weight");
  const uint64_t rows = qkv->info->shape[0];

  ViTConfig config;
  config.dim = qkv->info->shape[1];
  config.heads = 8;
  config.qkv_bias = files.find(*prefix + "qkv.bias") != nullptr;
  config.projection = proj != nullptr;
  std::string origin = file;
  for (const std::string& assignment : set) {
    set_field(config, assignment);
    origin += " with --set " + assignment;
  }
  // The values' columns are the projection's inputs, the rest is queries and keys in equal parts.
  const uint64_t value_columns = proj ? proj->info->shape[1] : rows / 3;
  const uint64_t key_columns = rows > value_columns ? (rows - value_columns) / 2 : 0;
  const auto head_width = [&](const char* which, uint64_t columns) {
    if (config.heads && columns && columns % config.heads == 0) return columns / config.heads;
    throw Error(ErrorCode::bad_file, origin + ": found " + std::to_string(columns) + " columns of " + which +
                                         " for " + std::to_string(config.heads) +
                                         " heads, expected a multiple: say --set heads=N");
  };
  if (!config.key_width) config.key_width = head_width("keys", key_columns);
  if (!config.value_width) config.value_width = head_width("values", value_columns);
  config.validate(origin);
  Attention module(config);
  auto constants = file_weights(module, path, *prefix, std::move(warn));
  return BareAttention{std::move(module), std::move(constants)};
}

}  // namespace vitrine
