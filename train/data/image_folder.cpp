// Pictures in folders that are called like their classes.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "images/image.h"
#include "images/picture_files.h"
#include "model/pictures/host_resample.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/dataset_kinds.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;

bool is_folder(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The folders in a folder, sorted by name; hidden ones are somebody else's.
std::vector<std::string> folders_in(const Path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && is_folder(entry->path())) names.push_back(name);
  }
  if (error)
    throw Error(ErrorCode::bad_file, "cannot read the folder " + shown(folder) + ": " + error.message());
  std::ranges::sort(names);
  return names;
}

std::optional<Path> split_folder(const Path& folder, Split split) {
  if (split == Split::train)
    return is_folder(folder / "train") ? std::optional(folder / "train") : std::nullopt;
  const char* names[] = {"test", "val"};
  if (split == Split::validation) std::ranges::reverse(names);
  for (const char* name : names) {
    if (is_folder(folder / name)) return folder / name;
  }
  return std::nullopt;
}

// What cannot be decoded is a broken data file here.
template <typename Work>
auto as_data_file(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(ErrorCode::bad_file, error.what());
  }
}

// Decoded pictures, those that are asked for first, as many as there is room for.
class KeptPictures {
 public:
  KeptPictures(uint64_t count, uint64_t most_bytes) : pictures_(count), room_(most_bytes) {}

  std::shared_ptr<const Picture> find(uint64_t i) const {
    const std::lock_guard lock(mutex_);
    return pictures_[i];
  }

  void keep(uint64_t i, const std::shared_ptr<const Picture>& picture) {
    const std::lock_guard lock(mutex_);
    // Another thread may have been at it.
    if (pictures_[i] || picture->pixels.size() > room_) return;
    pictures_[i] = picture;
    room_ -= picture->pixels.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const Picture>> pictures_;
  uint64_t room_;
};

class ImageFolder : public Dataset {
 public:
  ImageFolder(const Path& folder, const std::vector<std::string>& class_names,
              const DatasetOptions& options) {
    name_ = shown(folder);
    shape_ = options.shape;
    preprocess_ =
        options.preprocess ? *options.preprocess : cover_and_crop(shape_.height, shape_.width, {0}, {1});
    class_names_ = class_names;
    classes_ = options.classes != 0 ? options.classes : static_cast<uint32_t>(class_names.size());
    for (const std::string& name : folders_in(folder)) add_class(folder, name);
    if (files_.empty())
      throw Error(ErrorCode::bad_file,
                  name_ + ": found no folders, expected one with pictures for each class");
    if (class_names_.size() != classes_) class_names_.clear();
    kept_ = std::make_unique<KeptPictures>(count(), options.kept_bytes);
  }

  // On the host: for a few pictures to look at, and for statistics. A training has the device do it.
  void read(uint64_t i, std::span<uint8_t> pixels) const override {
    const std::shared_ptr<const Picture> picture = this->picture(i);
    const PreparedPicture prepared =
        prepare_picture(*preprocess_, picture->height, picture->width, shown(files_[i]));
    std::vector<uint32_t> packed(picture->pixels.size() / 4);
    std::memcpy(packed.data(), picture->pixels.data(), picture->pixels.size());
    const std::vector<uint32_t> resized = resample_on_host(packed, picture->width, prepared);
    for (uint32_t c = 0; c < shape_.channels; ++c) {
      const std::span<uint8_t> plane = pixels.subspan(c * shape_.pixels(), shape_.pixels());
      for (size_t p = 0; p < plane.size(); ++p) plane[p] = static_cast<uint8_t>(resized[p] >> (8 * c));
    }
  }

  std::shared_ptr<const Picture> picture(uint64_t i) const override {
    if (auto kept = kept_->find(i)) return kept;
    Image image = as_data_file([&] { return decode_image(files_[i]); });
    if (shape_.channels == 1) make_grey(image);
    // Said here, where the file's name is known.
    as_data_file([&] { return picture_geometry(*preprocess_, image.height, image.width, shown(files_[i])); });
    auto decoded = std::make_shared<const Picture>(
        Picture{.width = image.width, .height = image.height, .pixels = std::move(image.pixels)});
    kept_->keep(i, decoded);
    return decoded;
  }

 private:
  void add_class(const Path& folder, const std::string& name) {
    // Files that say what the classes are called are UTF-8.
    if (find_invalid_utf8(name))
      throw Error(ErrorCode::bad_file,
                  name_ + ": found the class " + in_quotes(name) + ", expected a name in UTF-8");
    const auto place = std::ranges::find(class_names_, name);
    const auto label = static_cast<uint32_t>(place - class_names_.begin());
    if (place == class_names_.end() || label >= classes_) {
      throw Error(ErrorCode::bad_file,
                  name_ + ": found the class " + in_quotes(name) + ", expected one of the " +
                      std::to_string(classes_) + " classes " +
                      (place == class_names_.end() ? "of the training set" : "of the model"));
    }
    const std::vector<Path> pictures =
        as_data_file([&] { return picture_files(std::vector{folder / name}); });
    files_.insert(files_.end(), pictures.begin(), pictures.end());
    labels_.resize(files_.size(), label);
  }

  std::vector<Path> files_;
  std::unique_ptr<KeptPictures> kept_;
};

void require_size(const Path& folder, const DatasetOptions& options) {
  const SampleShape& shape = options.shape;
  if ((shape.channels != 1 && shape.channels != 3) || shape.height == 0 || shape.width == 0) {
    throw Error(ErrorCode::usage,
                shown(folder) + ": found folders of pictures and the size " + shape.to_string() +
                    ", expected the size (1 or 3 channels, height, width) that they are to get");
  }
  const std::optional<Preprocess>& p = options.preprocess;
  if (p && (p->height() != shape.height || p->width() != shape.width)) {
    throw Error(ErrorCode::usage, shown(folder) + ": found preprocessing to " + std::to_string(p->height()) +
                                      " x " + std::to_string(p->width()) + " pixels, expected the model's " +
                                      std::to_string(shape.height) + " x " + std::to_string(shape.width));
  }
}

}  // namespace

std::unique_ptr<Dataset> open_image_folder(const Path& folder, Split split, const DatasetOptions& options) {
  const std::optional<Path> train = split_folder(folder, Split::train),
                            test = split_folder(folder, split == Split::train ? Split::test : split);
  if (!train && !test) return nullptr;
  const std::optional<Path>& wanted = split == Split::train ? train : test;
  if (!wanted) {
    throw Error(
        ErrorCode::bad_file,
        shown(folder) + (split == Split::train
                             ? ": found a folder test or val but no folder train, expected both"
                             : ": found a folder train but neither test nor val, expected one of them"));
  }
  require_size(folder, options);
  // The training set decides which number a class has.
  return std::make_unique<ImageFolder>(*wanted, folders_in(train ? *train : *test), options);
}

}  // namespace vitrine
