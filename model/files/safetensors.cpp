#include "model/files/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "model/files/safetensors_header.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr uint64_t length_bytes = 8;
constexpr uint64_t longest_header = 100'000'000;  // the format's own limit

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw Error(ErrorCode::bad_file, file + ": " + what);
}

std::string_view header_text(std::span<const std::byte> bytes, const std::string& file) {
  if (bytes.size() < length_bytes) {
    fail(file, "the file has " + std::to_string(bytes.size()) + " bytes, expected at least 8");
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > longest_header) {
    fail(file, "the header is said to have " + std::to_string(length) + " bytes, expected at most " +
                   std::to_string(longest_header));
  }
  if (length > bytes.size() - length_bytes) {
    fail(file, "the header is said to have " + std::to_string(length) + " bytes, but only " +
                   std::to_string(bytes.size() - length_bytes) + " follow");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + length_bytes, length);
  if (!text.starts_with('{')) {
    fail(file, "the header starts with " + in_quotes(text.substr(0, 1)) + ", expected \"{\"");
  }
  return text;
}

// The tensors must cover the data one after the other. `tensors` is sorted by where they begin.
void check_cover(std::span<const TensorInfo> tensors, uint64_t data_bytes, const std::string& file) {
  uint64_t covered = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin == covered) {
      covered = tensor.end;
      continue;
    }
    fail(file, "tensor " + in_quotes(tensor.name) + " begins at byte " + std::to_string(tensor.begin) +
                   " of the data, expected " + std::to_string(covered) +
                   (tensor.begin > covered ? ": there is a hole before it" : ": it overlaps another"));
  }
  if (covered != data_bytes) {
    fail(file, "the file has " + std::to_string(data_bytes) + " bytes of data, expected the " +
                   std::to_string(covered) + " of its tensors");
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::string name = shown(path);
  const std::string_view text = header_text(file_.bytes(), name);
  data_offset_ = length_bytes + text.size();
  const uint64_t data_bytes = file_.bytes().size() - data_offset_;
  const auto header_bytes = file_.bytes().subspan(length_bytes, text.size());

  // A header may be as long as 100 MB; what was read of it need not stay in memory.
  SafetensorsHeader header = parse_safetensors_header(
      text, data_bytes, name, [&](size_t read) { file_.forget(header_bytes.first(read)); });
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);

  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::sort(by_name_.begin(), by_name_.end(),
            [this](size_t a, size_t b) { return tensors_[a].name < tensors_[b].name; });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(), [this](size_t a, size_t b) {
    return tensors_[a].name == tensors_[b].name;
  });
  if (twice != by_name_.end())
    fail(name, "tensor " + in_quotes(tensors_[*twice].name) + " stands in it twice");
  check_cover(tensors_, data_bytes, name);
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](size_t a, std::string_view b) { return std::string_view(tensors_[a].name) < b; });
  return found != by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorInfo& tensor) const {
  return file_.bytes().subspan(data_offset_ + tensor.begin, tensor.end - tensor.begin);
}

std::vector<float> SafetensorsFile::floats(const TensorInfo& tensor) const {
  if (!is_float_weight(tensor.dtype)) {
    fail(shown(path()), "tensor " + in_quotes(tensor.name) + " is of type " +
                            std::string(name_of(tensor.dtype)) + ", expected F32, F16 or BF16");
  }
  std::vector<float> values(tensor.elements());
  to_floats(tensor.dtype, bytes(tensor), values);
  return values;
}

}  // namespace vitrine
