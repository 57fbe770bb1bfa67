// Pictures in folders that are called like their classes.
#include <algorithm>
#include <optional>

#include "images/picture_files.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/dataset_kinds.h"
#include "train/data/files/file_list.h"
#include "train/data/files/split_files.h"
#include "train/data/picture_dataset.h"

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
  for (const char* name : split_names(split)) {
    if (is_folder(folder / name)) return folder / name;
  }
  return std::nullopt;
}

// The classes are stamped before they are listed, so that what comes while they are makes the index
// another's.
IndexKey index_key(const Path& folder, const std::vector<std::string>& classes, double settled_seconds) {
  IndexKey key{
      .kind = "folders", .path = folder, .stamps = {stamp_of(folder)}, .settled_seconds = settled_seconds};
  for (const std::string& name : classes) {
    FileStamp stamp = stamp_of(folder / name);
    stamp.number ^= hash_of(name);
    key.stamps.push_back(stamp);
  }
  return key;
}

class ImageFolder : public PictureDataset {
 public:
  ImageFolder(const Path& folder, const std::vector<std::string>& class_names, const DatasetOptions& options)
      : PictureDataset(shown(folder), options), folder_(folder) {
    class_names_ = class_names;
    classes_ = options.classes != 0 ? options.classes : static_cast<uint32_t>(class_names.size());
    folders_ = folders_in(folder);
    std::vector<uint32_t> labels;
    for (const std::string& name : folders_) labels.push_back(label_of(name));
    list(options);
    if (files_.size() == 0)
      throw Error(ErrorCode::bad_file,
                  name_ + ": found no folders, expected one with pictures for each class");
    require_countable(name_, files_.size());
    labels_.resize(files_.size());
    for (size_t f = 0; f < folders_.size(); ++f)
      std::fill(labels_.begin() + first_of(f), labels_.begin() + first_of(f + 1), labels[f]);
    if (class_names_.size() != classes_) class_names_.clear();
  }

  Path file(uint64_t i) const override { return path_of(i); }

 private:
  EncodedPicture encoded(uint64_t i) const override { return encoded_file(path_of(i)); }

  ptrdiff_t first_of(size_t folder) const { return static_cast<ptrdiff_t>(first_[folder]); }

  Path path_of(uint64_t i) const {
    const auto folder = std::ranges::upper_bound(first_, i) - first_.begin() - 1;
    return folder_ / folders_[static_cast<size_t>(folder)] / files_[i];
  }

  uint32_t label_of(const std::string& name) const {
    // Files that say what the classes are called are UTF-8.
    if (find_invalid_utf8(name))
      throw Error(ErrorCode::bad_file,
                  name_ + ": found the class " + in_quotes(name) + ", expected a name in UTF-8");
    const auto place = std::ranges::lower_bound(class_names_, name);
    const bool known = place != class_names_.end() && *place == name;
    const auto label = static_cast<uint32_t>(place - class_names_.begin());
    if (!known || label >= classes_) {
      throw Error(ErrorCode::bad_file, name_ + ": found the class " + in_quotes(name) +
                                           ", expected one of the " + std::to_string(classes_) + " classes " +
                                           (known ? "of the model" : "of the training set"));
    }
    return label;
  }

  void list(const DatasetOptions& options) {
    const IndexKey key = index_key(folder_, folders_, options.settled_seconds);
    if (take_index(key)) return;
    files_ = FileList();
    first_ = {0};
    for (const std::string& name : folders_) {
      as_data_file(
          [&] { for_each_picture_name(folder_ / name, [&](std::string_view file) { files_.add(file); }); });
      files_.sort_from(first_.back());
      first_.push_back(files_.size());
    }
    files_.shrink();
    if (files_.size() < options.least_indexed) return;
    IndexWriter writer;
    writer.numbers(std::span<const uint64_t>(first_));
    files_.write(writer);
    save_index(key, writer.bytes());
  }

  bool take_index(const IndexKey& key) {
    const std::optional<std::vector<std::byte>> content = load_index(key);
    if (!content) return false;
    IndexReader reader(*content);
    reader.read(first_);
    return files_.read(reader) && reader.complete() && first_.size() == folders_.size() + 1 &&
           first_.front() == 0 && first_.back() == files_.size() && std::ranges::is_sorted(first_);
  }

  Path folder_;
  std::vector<std::string> folders_;
  std::vector<uint64_t> first_;  // file of each folder, and how many there are
  FileList files_;
};

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
  // The training set decides which number a class has.
  return std::make_unique<ImageFolder>(*wanted, folders_in(train ? *train : *test), options);
}

}  // namespace vitrine
