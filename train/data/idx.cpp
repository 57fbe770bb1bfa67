// MNIST's format (and Fashion-MNIST's, and what vitrine digits writes): one file of pictures, one of labels,
// each of them big-endian numbers and then bytes.
#include <algorithm>
#include <array>
#include <optional>

#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/dataset_kinds.h"
#include "train/data/files/inflated_file.h"

namespace vitrine {
namespace {

constexpr uint32_t pictures_magic = 0x803,
                   labels_magic = 0x801;  // unsigned bytes, of three and one dimensions
constexpr size_t pictures_header = 16, labels_header = 8;

using Path = std::filesystem::path;

std::string file_name(Split split, bool labels) {
  return std::string(split == Split::train ? "train-" : "t10k-") + (labels ? "labels" : "images");
}

std::optional<Path> find_file(const Path& folder, Split split, bool labels) {
  const std::string kind = labels ? "idx1-ubyte" : "idx3-ubyte";
  for (const char* place : {"", "raw"}) {
    for (const char* between : {"-", "."}) {
      for (const char* end : {"", ".gz"}) {
        const Path path = folder / place / (file_name(split, labels) + between + kind + end);
        std::error_code ignored;
        if (std::filesystem::exists(path, ignored)) return path;
      }
    }
  }
  return std::nullopt;
}

uint32_t number_at(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

std::string hex(uint32_t value) {
  std::string text = "0x00000000";
  for (size_t i = text.size(); value != 0; value >>= 4) text[--i] = "0123456789abcdef"[value & 15];
  return text;
}

void require_magic(const InflatedFile& file, uint32_t expected, const char* what) {
  const uint32_t found = number_at(file.header(), 0);
  if (found == expected) return;
  throw Error(ErrorCode::bad_file, file.name() + ": found the first four bytes " + hex(found) +
                                       ", expected " + hex(expected) + " of IDX " + what);
}

class Idx : public Dataset {
 public:
  Idx(const Path& pictures_path, const Path& labels_path, const DatasetOptions& options)
      : pictures_(pictures_path, pictures_header) {
    name_ = pictures_.name();
    InflatedFile labels(labels_path, labels_header);
    require_magic(pictures_, pictures_magic, "pictures");
    require_magic(labels, labels_magic, "labels");
    const uint32_t count = read_header(options);
    if (const uint32_t label_count = number_at(labels.header(), 4); label_count != count) {
      throw Error(ErrorCode::bad_file, labels.name() + ": found " + std::to_string(label_count) +
                                           " labels, expected " + std::to_string(count) +
                                           ", one for each picture of " + name_);
    }
    pictures_.expect(count * shape_.bytes());
    read_labels(labels, count, options.classes);
    bytes_ = pictures_.read(count * shape_.bytes());
  }

  void read(uint64_t i, std::span<uint8_t> pixels) const override {
    const std::span<const std::byte> from = bytes_.subspan(i * shape_.bytes(), shape_.bytes());
    std::ranges::transform(from, pixels.begin(), [](std::byte b) { return std::to_integer<uint8_t>(b); });
  }

 private:
  uint32_t read_header(const DatasetOptions& options) {
    const std::span<const std::byte> header = pictures_.header();
    const uint32_t count = number_at(header, 4), height = number_at(header, 8), width = number_at(header, 12);
    // Four-byte counts times sides up to this stay below 2^64.
    constexpr uint32_t largest_side = 1 << 15;
    if (count == 0 || height == 0 || width == 0 || height > largest_side || width > largest_side) {
      throw Error(ErrorCode::bad_file, name_ + ": found " + std::to_string(count) + " pictures of " +
                                           std::to_string(height) + " x " + std::to_string(width) +
                                           " pixels, expected some, with sides from 1 to " +
                                           std::to_string(largest_side));
    }
    shape_ = {1, height, width};
    require_shape(name_, shape_, options.shape);
    return count;
  }

  void read_labels(InflatedFile& file, uint32_t count, uint32_t classes) {
    const std::span<const std::byte> bytes = file.read(count);
    labels_.reserve(count);
    for (const std::byte b : bytes) labels_.push_back(std::to_integer<uint32_t>(b));
    const auto highest = std::ranges::max_element(labels_);
    classes_ = classes != 0 ? classes : *highest + 1;
    if (*highest < classes_) return;
    throw Error(ErrorCode::bad_file, file.name() + ": found label " + std::to_string(*highest) +
                                         " of picture " + std::to_string(highest - labels_.begin()) +
                                         ", expected one from 0 to " + std::to_string(classes_ - 1));
  }

  InflatedFile pictures_;
  std::span<const std::byte> bytes_;
};

}  // namespace

std::unique_ptr<Dataset> open_idx(const Path& folder, Split split, const DatasetOptions& options) {
  const std::optional<Path> pictures = find_file(folder, split, false),
                            labels = find_file(folder, split, true);
  if (pictures && labels) return std::make_unique<Idx>(*pictures, *labels, options);
  const Split other = split == Split::train ? Split::test : Split::train;
  const std::optional<Path> present = pictures                          ? pictures
                                      : labels                          ? labels
                                      : find_file(folder, other, false) ? find_file(folder, other, false)
                                                                        : find_file(folder, other, true);
  if (!present) return nullptr;
  throw Error(ErrorCode::bad_file, shown(folder) + ": found " + present->filename().string() + " but no " +
                                       file_name(split, pictures.has_value()) +
                                       (pictures ? "-idx1-ubyte" : "-idx3-ubyte") +
                                       ", expected both, plain or with .gz");
}

}  // namespace vitrine
