#include "train/data/dataset.h"

#include <limits>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/dataset_kinds.h"

namespace vitrine {

std::string SampleShape::to_string() const {
  return std::to_string(channels) + " x " + std::to_string(height) + " x " + std::to_string(width);
}

std::vector<uint8_t> pixels_of(std::span<const uint8_t> planes, const SampleShape& shape) {
  std::vector<uint8_t> result(4 * shape.pixels(), 255);
  for (size_t i = 0; i < shape.pixels(); ++i) {
    for (size_t channel = 0; channel < 3; ++channel)
      result[4 * i + channel] = planes[(shape.channels >= 3 ? channel : 0) * shape.pixels() + i];
  }
  return result;
}

std::shared_ptr<const Picture> Dataset::picture(uint64_t i) const {
  std::vector<uint8_t> planes(shape_.bytes());
  read(i, planes);
  return std::make_shared<const Picture>(
      Picture{.width = shape_.width, .height = shape_.height, .pixels = pixels_of(planes, shape_)});
}

PicturePatch Dataset::patch(uint64_t i, const ChooseArea& choose) const {
  std::shared_ptr<const Picture> whole = picture(i);
  choose(whole->height, whole->width);
  return {.picture = std::move(whole)};
}

std::filesystem::path Dataset::file(uint64_t) const { return {}; }

void require_shape(const std::string& name, const SampleShape& found, const SampleShape& expected) {
  if (expected == SampleShape{} || found == expected) return;
  throw Error(ErrorCode::bad_file, name + ": found pictures of " + found.to_string() +
                                       " (channels, height, width), expected the model's " +
                                       expected.to_string());
}

void require_countable(const std::string& name, uint64_t samples) {
  constexpr uint64_t most = std::numeric_limits<uint32_t>::max();
  if (samples <= most) return;
  throw Error(ErrorCode::bad_file, name + ": found " + std::to_string(samples) +
                                       " pictures, expected at most " + std::to_string(most));
}

std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& folder, Split split,
                                      const DatasetOptions& options) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(folder, error);
  if (!std::filesystem::is_directory(status)) {
    const std::string found =
        std::filesystem::exists(status) ? "something that is no folder" : "no such folder";
    throw Error(ErrorCode::bad_file, shown(folder) + ": found " + found + ", expected one with a data set");
  }
  const Split of_two = split == Split::validation ? Split::test : split;  // the first two have no third part
  for (const auto open : {open_idx, open_cifar}) {
    if (std::unique_ptr<Dataset> dataset = open(folder, of_two, options)) return dataset;
  }
  for (const auto open : {open_tar_shards, open_parquet, open_csv, open_image_folder}) {
    if (std::unique_ptr<Dataset> dataset = open(folder, split, options)) return dataset;
  }
  throw Error(ErrorCode::bad_file, shown(folder) +
                                       ": found no data set, expected MNIST's files (train-images-idx3-ubyte "
                                       "...), CIFAR-10's (data_batch_1.bin ...), shards (train-*.tar), "
                                       "tables (train-*.parquet or train.csv), or folders train and test "
                                       "with a folder of pictures for each class");
}

}  // namespace vitrine
