// Labelled pictures, as they are trained on: numbered from 0, each with a class.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "images/image.h"
#include "model/pictures/picture_input.h"
#include "model/pictures/preprocess.h"

namespace vitrine {

// `validation` is what a training is tested on while it goes on: a part of its own where the data set has
// one, else the test part.
enum class Split : uint8_t { train, test, validation };

struct SampleShape {
  uint32_t channels = 0, height = 0, width = 0;

  uint64_t pixels() const { return uint64_t{height} * width; }
  uint64_t bytes() const { return channels * pixels(); }
  std::string to_string() const;  // "3 x 32 x 32"
  bool operator==(const SampleShape&) const = default;
};

// Planes, one after the other, as a picture's pixels: four bytes each. One plane is red, green and blue.
std::vector<uint8_t> pixels_of(std::span<const uint8_t> planes, const SampleShape& shape);

// A picture, or the rectangle of one that begins at this pixel.
struct PicturePatch {
  std::shared_ptr<const Picture> picture;
  uint32_t top = 0, left = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;

  const std::string& name() const { return name_; }  // for messages
  uint64_t count() const { return labels_.size(); }  // from 1 to 2^32 - 1
  // Of what a model is given of each.
  const SampleShape& shape() const { return shape_; }
  // How pictures of sizes of their own get that; nothing where all are stored in it, and taken as they are.
  const std::optional<Preprocess>& preprocess() const { return preprocess_; }

  uint32_t classes() const { return classes_; }
  // One a class; empty where the files don't say.
  const std::vector<std::string>& class_names() const { return class_names_; }
  // Below classes().
  uint32_t label(uint64_t i) const { return labels_[i]; }

  // Writes shape().bytes() bytes, [channels, height, width]. May be called from several threads at once.
  // Error(bad_file) that names the file where it can't be read.
  virtual void read(uint64_t i, std::span<uint8_t> pixels) const = 0;
  // The sample as it is stored, in the size that it has. A grey one has the same byte three times. As read().
  virtual std::shared_ptr<const Picture> picture(uint64_t i) const;
  // At least the rectangle that is chosen of it, once its size is known: the rest need not be decoded.
  // `choose` is called once.
  virtual PicturePatch patch(uint64_t i, const ChooseArea& choose) const;
  // What tells it from other data besides shape and labels, where that is cheap; or empty.
  const std::string& identity() const { return identity_; }
  // Where a sample lies that has a file of its own; empty for others.
  virtual std::filesystem::path file(uint64_t i) const;

 protected:
  std::string name_, identity_;
  SampleShape shape_;
  std::optional<Preprocess> preprocess_;
  uint32_t classes_ = 0;
  std::vector<std::string> class_names_;
  std::vector<uint32_t> labels_;
};

struct DatasetOptions {
  // What the model takes. A set whose pictures have a size of their own is refused unless it is this one; 0
  // takes what there is. Encoded pictures need it.
  SampleShape shape;
  // Labels must be below it. 0: what the set itself says, which for IDX files is the highest label and one.
  uint32_t classes = 0;
  // Encoded pictures: how they get the size. Resized to cover it and cropped in the middle if absent.
  std::optional<Preprocess> preprocess;
  // Encoded pictures: how much of the decoded pictures may be kept, so that they are decoded once only.
  uint64_t kept_bytes = uint64_t{1} << 30;
  // Of so many samples on, what was found out of where they lie is kept in the cache folder.
  uint64_t least_indexed = 10'000;
  // What was changed later than so many seconds ago isn't: another change at the same tick of the file
  // system's clock couldn't be seen. FAT's are two seconds.
  double settled_seconds = 3;
};

// Opens what lies in a folder, recognised in this order:
// - MNIST's IDX files (train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...), here or in raw/;
// - CIFAR-10's binary files (data_batch_1.bin, ..., test_batch.bin), here or in cifar-10-batches-bin/;
// - WebDataset's shards (train-*.tar or train/*.tar);
// - Hugging Face's tables with the pictures in them (train-*.parquet, here or in data/);
// - tables that name pictures (train.csv with the columns path and label);
// - image folders: train/CLASS/x.jpg.
// Of the last four the test part is called test or val; where there are both, val is for validation. Sizes
// are checked before memory is taken. Error(bad_file) if nothing is recognised or a file breaks its format's
// rules.
std::unique_ptr<Dataset> open_dataset(const std::filesystem::path& folder, Split split,
                                      const DatasetOptions& options = {});

}  // namespace vitrine
