// Tables of pictures in Parquet files, as Hugging Face's hub has them.
#include <algorithm>
#include <deque>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/class_labels.h"
#include "train/data/dataset_kinds.h"
#include "train/data/files/index_store.h"
#include "train/data/files/split_files.h"
#include "train/data/parquet/picture_table.h"
#include "train/data/picture_dataset.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;

// Of decompressed pages: a group of a hundred rows, as datasets writes them, is ten megabytes of photographs.
constexpr uint64_t most_page_bytes = uint64_t{512} << 20;

class ParquetPictures : public PictureDataset {
 public:
  ParquetPictures(const std::vector<Path>& files, const DatasetOptions& options)
      : PictureDataset(shown(files.size() == 1 ? files.front() : files.front().parent_path()), options) {
    first_ = {0};
    uint64_t checksum = hash_begin;
    for (const Path& file : files) {
      const parquet::PictureTable& table = tables_.emplace_back(file, pages_);
      first_.push_back(first_.back() + table.rows());
      checksum = hash_of(file.filename().string(), checksum);
      checksum = hash_of(std::as_bytes(std::span(&table.stamp().bytes, 1)), checksum);
    }
    if (first_.back() == 0)
      throw Error(ErrorCode::bad_file, name_ + ": found no rows, expected a picture in each");
    require_countable(name_, first_.back());
    class_names_ = tables_.front().class_names();
    read_labels(options.classes);
    identity_ = "tables " + std::to_string(checksum);
  }

 private:
  void read_labels(uint32_t classes) {
    uint32_t highest = 0;
    // What the file says of its classes goes before the highest label.
    const uint64_t said =
        class_names_.empty() ? most_classes : std::min<uint64_t>(class_names_.size(), most_classes);
    const uint64_t below = classes != 0 ? std::min<uint64_t>(classes, said) : said;
    labels_.reserve(first_.back());
    for (const parquet::PictureTable& table : tables_) {
      for (const int64_t label : table.labels()) {
        if (label < 0 || static_cast<uint64_t>(label) >= below) {
          throw Error(ErrorCode::bad_file, name_of(labels_.size()) + ": found the label " +
                                               std::to_string(label) + ", expected one from 0 to " +
                                               std::to_string(below - 1));
        }
        labels_.push_back(static_cast<uint32_t>(label));
        highest = std::max(highest, labels_.back());
      }
    }
    classes_ = classes != 0 ? classes : class_names_.empty() ? highest + 1 : static_cast<uint32_t>(said);
    if (class_names_.size() != classes_ || std::ranges::any_of(class_names_, [](const std::string& name) {
          return find_invalid_utf8(name).has_value();
        })) {
      class_names_.clear();
    }
  }

  size_t table_of(uint64_t i) const {
    return static_cast<size_t>(std::ranges::upper_bound(first_, i) - first_.begin() - 1);
  }

  EncodedPicture encoded(uint64_t i) const override {
    const size_t t = table_of(i);
    return {.file = tables_[t].picture(i - first_[t]), .name = name_of(i)};
  }

  std::string name_of(uint64_t i) const {
    const size_t t = table_of(i);
    return tables_[t].name() + ", row " + std::to_string(i - first_[t]);
  }

  mutable parquet::PageStore pages_{most_page_bytes};
  std::deque<parquet::PictureTable> tables_;  // they stay where they are
  std::vector<uint64_t> first_;               // row of each, and how many there are
};

}  // namespace

std::unique_ptr<Dataset> open_parquet(const Path& folder, Split split, const DatasetOptions& options) {
  const std::vector<Path> files = wanted_files(folder, split, ".parquet", "tables (.parquet)");
  if (files.empty()) return nullptr;
  return std::make_unique<ParquetPictures>(files, options);
}

}  // namespace vitrine
