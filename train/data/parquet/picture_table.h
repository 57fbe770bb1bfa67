// A Parquet file of pictures and labels, as Hugging Face's datasets are stored: the column "image" with the
// encoded files ("image.bytes", or by itself), and "label" with whole numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "train/data/parquet/pages.h"

namespace vitrine::parquet {

// A page that pictures are taken from.
struct PicturePage {
  // The page, or nothing where it isn't compressed: then a picture is read from the file by itself.
  std::vector<std::byte> bytes;
  uint64_t begin = 0;            // of the values, in `bytes` or in the file
  std::vector<uint32_t> places;  // as find_strings() has them; of a dictionary's numbers these
  bool dictionary = false;

  uint64_t held() const { return bytes.size() + places.size() * sizeof(uint32_t); }
};

// The pages that were wanted last, up to so many bytes of them. For several threads.
class PageStore {
 public:
  using Key = std::tuple<const void*, size_t, size_t>;  // of a table, its group of rows, and the page
  explicit PageStore(uint64_t most_bytes) : most_bytes_(most_bytes) {}

  std::shared_ptr<const PicturePage> find(const Key& key);
  std::shared_ptr<const PicturePage> add(const Key& key, PicturePage page);

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const PicturePage> page;
  };
  std::mutex mutex_;
  uint64_t most_bytes_, bytes_ = 0;
  std::list<Entry> entries_;  // the latest in front
  std::map<Key, std::list<Entry>::iterator> places_;
};

class PictureTable {
 public:
  // Reads what the file says of itself. Error(bad_file) for one without these columns. `pages` outlives this.
  PictureTable(const std::filesystem::path& path, PageStore& pages);

  const std::string& name() const { return name_; }
  const FileStamp& stamp() const { return stamp_; }
  uint64_t rows() const { return metadata_.rows; }
  // Of the label's numbers, as datasets has written them; empty where it hasn't.
  std::vector<std::string> class_names() const;

  // Reads all of them; each row has one, or that is an Error(bad_file).
  std::vector<int64_t> labels() const;
  // The encoded picture of a row. Only the page that it is in is read, and where that isn't compressed not
  // even that. May be called from several threads at once.
  std::vector<std::byte> picture(uint64_t row) const;

 private:
  const ChunkPages& pages_of(const ByteFile& file, size_t group) const;
  std::shared_ptr<const PicturePage> page(const ByteFile& file, size_t group, size_t number) const;
  PicturePage load(const ByteFile& file, const ChunkPages& chunk, size_t number) const;
  std::vector<std::byte> string_of(const ByteFile& file, const PicturePage& page, uint32_t number) const;

  std::filesystem::path path_;
  std::string name_;
  FileStamp stamp_;
  FileMetadata metadata_;
  size_t picture_column_ = 0, label_column_ = 0;
  std::vector<uint64_t> first_;  // row of each group, and how many there are
  PageStore& store_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<ChunkPages>> found_;  // a group's, from when it was first wanted
};

}  // namespace vitrine::parquet
