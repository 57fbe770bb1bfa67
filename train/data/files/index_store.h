// What was found out about a large data set, kept in the cache folder, so that it is looked at once only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "train/data/files/byte_file.h"

namespace vitrine {

struct IndexKey {
  std::string_view kind;  // names what keeps it, and how
  std::filesystem::path path;
  // Of whatever the index was made from: with other stamps it is another one.
  std::vector<FileStamp> stamps;
  double settled_seconds = 3;  // see DatasetOptions
  // About when the stamps were taken: what comes later may not show in them.
  std::chrono::system_clock::time_point looked = std::chrono::system_clock::now();
};

// Nothing where there is none, where it is of other stamps, or where it isn't whole.
std::optional<std::vector<std::byte>> load_index(const IndexKey& key);
// Whole or not at all. A folder that can't be written to is no error, the next start is slower; nor is
// anything kept of what was changed just now.
void save_index(const IndexKey& key, std::span<const std::byte> content);

// FNV-1a.
constexpr uint64_t hash_begin = 0xcbf29ce484222325u;
uint64_t hash_of(std::span<const std::byte> bytes, uint64_t hash = hash_begin);
uint64_t hash_of(std::string_view text, uint64_t hash = hash_begin);

// What an index is made of, one thing behind the other.
class IndexWriter {
 public:
  template <typename Number>
  void numbers(std::span<const Number> values) {
    const uint64_t count = values.size();
    append(std::as_bytes(std::span(&count, 1)));
    append(std::as_bytes(values));
  }
  void text(std::string_view text) { numbers(std::span(text.data(), text.size())); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(std::span<const std::byte> more) { bytes_.insert(bytes_.end(), more.begin(), more.end()); }
  std::vector<std::byte> bytes_;
};

// Gives it back; all false from the first thing on that isn't there.
class IndexReader {
 public:
  explicit IndexReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Container>
  bool read(Container& values) {
    uint64_t count = 0;
    constexpr size_t each = sizeof(typename Container::value_type);
    if (!take(&count, sizeof count) || count > bytes_.size() / each) return whole_ = false;
    values.resize(count);
    return take(values.data(), count * each);
  }
  // Whether all of it was read, and was there.
  bool complete() const { return whole_ && bytes_.empty(); }

 private:
  bool take(void* to, size_t bytes);

  std::span<const std::byte> bytes_;
  bool whole_ = true;
};

}  // namespace vitrine
