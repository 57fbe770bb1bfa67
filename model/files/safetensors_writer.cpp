#include "model/files/safetensors_writer.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <tuple>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/overflow.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr std::string_view metadata_key = "__metadata__";

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what) {
  throw Error(ErrorCode::usage, "cannot write " + shown(path) + ": " + what);
}

std::string json_string(const std::filesystem::path& path, const std::string& text) {
  if (find_invalid_utf8(text)) fail(path, in_quotes(text) + " is not UTF-8");
  return nlohmann::json(text).dump();
}

void check(const std::filesystem::path& path, const TensorToWrite& tensor) {
  uint64_t bits = 1;
  bool fits = true;
  for (const uint64_t dim : tensor.shape) fits = fits && multiply(bits, dim);
  if (!fits || !multiply(bits, bits_of(tensor.dtype)) || bits % 8 != 0 || bits / 8 != tensor.data.size()) {
    fail(path, "tensor " + in_quotes(tensor.name) + " has " + std::to_string(tensor.data.size()) +
                   " bytes, which do not fit its type and shape");
  }
  if (tensor.name == metadata_key) fail(path, "a tensor cannot be named \"__metadata__\"");
}

std::string header_of(const std::filesystem::path& path, std::span<const TensorToWrite* const> sorted,
                      const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += '"' + std::string(metadata_key) + "\":{";
    for (const auto& [key, value] : metadata) {
      text += json_string(path, key) + ':' + json_string(path, value) + ',';
    }
    text.back() = '}';
    text += ',';
  }
  uint64_t offset = 0;
  for (const TensorToWrite* tensor : sorted) {
    const uint64_t end = offset + tensor->data.size();
    text += json_string(path, tensor->name) + ":{\"dtype\":\"" + std::string(name_of(tensor->dtype)) +
            "\",\"shape\":[";
    for (size_t i = 0; i < tensor->shape.size(); ++i)
      text += (i != 0 ? "," : "") + std::to_string(tensor->shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(offset) + ',' + std::to_string(end) + "]},";
    offset = end;
  }
  if (text.back() == ',') text.pop_back();
  text += '}';
  constexpr size_t alignment = 8;
  text.resize((text.size() + alignment - 1) / alignment * alignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const TensorToWrite*> sorted;
  for (const TensorToWrite& tensor : tensors) {
    check(path, tensor);
    sorted.push_back(&tensor);
  }
  std::sort(sorted.begin(), sorted.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    return std::tie(b->dtype, a->name) < std::tie(a->dtype, b->name);
  });
  std::vector<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) names.emplace_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail(path, "two tensors are named " + in_quotes(*twice));

  const std::string header = header_of(path, sorted, metadata);
  static_assert(std::endian::native == std::endian::little,
                "the length and the data are written as they are");
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const TensorToWrite* tensor : sorted) file.write(tensor->data);
  file.commit();
}

}  // namespace vitrine
