// CIFAR-10's binary version: records of a label and 32 x 32 pixels, all red, then all green, then all blue.
#include <algorithm>
#include <array>
#include <optional>

#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/text.h"
#include "train/data/dataset_kinds.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;

constexpr SampleShape shape_of_all{3, 32, 32};
constexpr uint32_t cifar_classes = 10;
constexpr size_t record_bytes = 1 + 3 * 32 * 32;

std::vector<std::string> file_names(Split split) {
  if (split == Split::test) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int i = 1; i <= 5; ++i) names.push_back("data_batch_" + std::to_string(i) + ".bin");
  return names;
}

bool is_there(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool holds_any(const Path& folder) {
  for (const Split split : {Split::train, Split::test}) {
    for (const std::string& name : file_names(split)) {
      if (is_there(folder / name)) return true;
    }
  }
  return false;
}

// One name a line.
std::vector<std::string> read_class_names(const Path& path) {
  const MappedFile file(path);
  constexpr size_t most_bytes = 4096;
  const auto refuse = [&](const std::string& found) {
    throw Error(ErrorCode::bad_file,
                shown(path) + ": found " + found + ", expected ten lines with a class's name each");
  };
  if (file.bytes().size() > most_bytes) refuse(std::to_string(file.bytes().size()) + " bytes");
  std::vector<std::string> names(1);
  for (const std::byte b : file.bytes()) {
    const char letter = static_cast<char>(b);
    if (letter == '\n') {
      names.emplace_back();
    } else if (letter != '\r') {
      names.back() += letter;
    }
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (names.size() != cifar_classes) refuse(std::to_string(names.size()) + " lines");
  for (const std::string& name : names) {
    const bool control =
        std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) < ' '; });
    if (name.empty() || control || find_invalid_utf8(name)) refuse("the line " + in_quotes(name));
  }
  return names;
}

class Cifar : public Dataset {
 public:
  Cifar(const Path& folder, Split split, const DatasetOptions& options) {
    name_ = shown(folder);
    shape_ = shape_of_all;
    classes_ = options.classes != 0 ? options.classes : cifar_classes;
    require_shape(name_, shape_, options.shape);
    if (is_there(folder / "batches.meta.txt")) class_names_ = read_class_names(folder / "batches.meta.txt");
    // The names are of no use to a model with another number of classes.
    if (classes_ != cifar_classes) class_names_.clear();
    for (const std::string& file : file_names(split)) add(folder, file);
  }

  void read(uint64_t i, std::span<uint8_t> pixels) const override {
    size_t file = 0;
    while (i >= counts_[file]) i -= counts_[file++];
    const auto record = files_[file].bytes().subspan(i * record_bytes + 1, record_bytes - 1);
    std::ranges::transform(record, pixels.begin(), [](std::byte b) { return std::to_integer<uint8_t>(b); });
  }

 private:
  void add(const Path& folder, const std::string& file_name) {
    const Path path = folder / file_name;
    if (!is_there(path)) {
      throw Error(ErrorCode::bad_file,
                  shown(folder) + ": found no " + file_name +
                      ", expected it beside the other files of CIFAR-10's binary version");
    }
    MappedFile file(path);
    const size_t size = file.bytes().size(), count = size / record_bytes;
    if (size == 0 || size % record_bytes != 0) {
      throw Error(ErrorCode::bad_file,
                  shown(path) + ": found " + std::to_string(size) +
                      " bytes, expected a multiple of 3073, for each picture a label and "
                      "3 x 32 x 32 pixels");
    }
    for (size_t i = 0; i < count; ++i) {
      const auto label = std::to_integer<uint32_t>(file.bytes()[i * record_bytes]);
      if (label >= std::min(classes_, cifar_classes)) {
        throw Error(ErrorCode::bad_file, shown(path) + ": found label " + std::to_string(label) +
                                             " of picture " + std::to_string(i) +
                                             ", expected one from 0 to " +
                                             std::to_string(std::min(classes_, cifar_classes) - 1));
      }
      labels_.push_back(label);
    }
    counts_.push_back(count);
    files_.push_back(std::move(file));
  }

  std::vector<MappedFile> files_;
  std::vector<uint64_t> counts_;  // of the pictures in each
};

}  // namespace

std::unique_ptr<Dataset> open_cifar(const Path& folder, Split split, const DatasetOptions& options) {
  for (const Path& place : {folder, folder / "cifar-10-batches-bin"}) {
    if (holds_any(place)) return std::make_unique<Cifar>(place, split, options);
  }
  return nullptr;
}

}  // namespace vitrine
