#include "train/data/parquet/picture_table.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/text.h"

namespace vitrine::parquet {
namespace {

constexpr size_t of_dictionary = std::numeric_limits<size_t>::max();  // instead of a page's number

// What is wrong with a page is said of its file.
template <typename Work>
auto in_file(const ByteFile& file, const Column& column, const Work& work) {
  try {
    return work();
  } catch (const BadPage& bad) {
    refuse(file, bad.found + " in the column " + in_quotes(column.path), bad.expected);
  }
}

size_t column_of(const ByteFile& file, const FileMetadata& metadata, const std::vector<const char*>& names,
                 const std::vector<ValueType>& types, const std::string& expected) {
  for (const char* name : names) {
    const std::optional<size_t> place = metadata.find(name);
    if (!place) continue;
    const Column& column = metadata.columns[*place];
    if (column.repeated) refuse(file, "lists in the column " + in_quotes(name), expected);
    if (std::ranges::any_of(types, [&](ValueType t) { return static_cast<int64_t>(t) == column.type; }))
      return *place;
    refuse(file, type_name(column.type) + " in the column " + in_quotes(name), expected);
  }
  std::string found;
  constexpr size_t most = 8;
  for (size_t c = 0; c < std::min(most, metadata.columns.size()); ++c)
    found += (found.empty() ? "" : ", ") + metadata.columns[c].path;
  if (metadata.columns.size() > most) found += ", ...";
  refuse(file, "the columns " + in_quotes(found), expected);
}

}  // namespace

std::shared_ptr<const PicturePage> PageStore::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->page;
}

std::shared_ptr<const PicturePage> PageStore::add(const Key& key, PicturePage page) {
  auto added = std::make_shared<const PicturePage>(std::move(page));
  const std::lock_guard lock(mutex_);
  // Another thread may have been at it.
  if (const auto place = places_.find(key); place != places_.end()) return place->second->page;
  entries_.push_front({key, added});
  places_[key] = entries_.begin();
  bytes_ += added->held();
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().page->held();
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return added;
}

PictureTable::PictureTable(const std::filesystem::path& path, PageStore& pages) : path_(path), store_(pages) {
  const ByteFile file(path);
  name_ = file.name();
  stamp_ = file.stamp();
  metadata_ = read_metadata(file);
  picture_column_ =
      column_of(file, metadata_, {"image.bytes", "image"}, {ValueType::bytes},
                "the column \"image\" with encoded pictures (a structure with \"bytes\", or BYTE_ARRAY)");
  label_column_ = column_of(file, metadata_, {"label"}, {ValueType::i64, ValueType::i32},
                            "the column \"label\" with whole numbers (INT64 or INT32)");
  first_ = {0};
  for (const RowGroup& group : metadata_.groups) first_.push_back(first_.back() + group.rows);
  found_.resize(metadata_.groups.size());
}

std::vector<std::string> PictureTable::class_names() const {
  if (metadata_.hugging_face.empty()) return {};
  const nlohmann::json json = parse_json(metadata_.hugging_face, name_ + ", \"huggingface\"");
  const nlohmann::json* part = &json;
  for (const char* key : {"info", "features", "label", "names"}) {
    if (!part->is_object() || !part->contains(key)) return {};
    part = &part->at(key);
  }
  std::vector<std::string> names;
  if (!part->is_array()) return {};
  for (const nlohmann::json& name : *part) {
    if (!name.is_string()) return {};
    names.push_back(name.get<std::string>());
  }
  return names;
}

std::vector<int64_t> PictureTable::labels() const {
  const ByteFile file(path_, stamp_);
  const Column& column = metadata_.columns[label_column_];
  const auto type = static_cast<ValueType>(column.type);
  std::vector<int64_t> labels;
  labels.reserve(rows());
  for (const RowGroup& group : metadata_.groups) {
    const ChunkPages pages = find_pages(file, group.chunks[label_column_], column, group.rows);
    in_file(file, column, [&] {
      std::vector<int64_t> dictionary;
      if (pages.dictionary) {
        const Page& page = *pages.dictionary;
        dictionary = read_integers(read_page(file, page, {}).values(), type, page.values);
      }
      for (const Page& page : pages.data) {
        const PageBytes bytes = read_page(file, page, column);
        if (page.dictionary) {
          const auto below = static_cast<uint32_t>(dictionary.size());
          for (const uint32_t number : read_indices(bytes.values(), page.values, below))
            labels.push_back(dictionary[number]);
        } else {
          const std::vector<int64_t> plain = read_integers(bytes.values(), type, page.values);
          labels.insert(labels.end(), plain.begin(), plain.end());
        }
      }
    });
  }
  return labels;
}

const ChunkPages& PictureTable::pages_of(const ByteFile& file, size_t group) const {
  {
    const std::lock_guard lock(mutex_);
    if (found_[group]) return *found_[group];
  }
  auto pages = std::make_unique<ChunkPages>(find_pages(file, metadata_.groups[group].chunks[picture_column_],
                                                       metadata_.columns[picture_column_],
                                                       metadata_.groups[group].rows));
  const std::lock_guard lock(mutex_);
  if (!found_[group]) found_[group] = std::move(pages);
  return *found_[group];
}

PicturePage PictureTable::load(const ByteFile& file, const ChunkPages& chunk, size_t number) const {
  const bool is_dictionary = number == of_dictionary;
  const Page& page = is_dictionary ? *chunk.dictionary : chunk.data[number];
  // A dictionary has no levels.
  const Column none;
  const Column& column = is_dictionary ? none : metadata_.columns[picture_column_];
  PicturePage result{.dictionary = page.dictionary};
  if (page.codec == Codec::none && !page.dictionary) {
    // Only the lengths are looked at.
    const uint64_t skipped = values_of_plain_page(file, page, column);
    result.begin = page.begin + skipped;
    const uint64_t size = page.stored - skipped;
    FileWindow window(file, 4096);
    uint64_t at = 0;
    result.places.reserve(std::min<uint64_t>(page.values, size / 4) + 1);
    for (uint32_t i = 0; i < page.values; ++i) {
      if (size - at < 4) throw BadPage{"a value that ends behind its page", "it within"};
      const std::span<const std::byte> length = window.at(result.begin + at, 4);
      uint32_t bytes = 0;
      for (size_t b = 0; b < length.size(); ++b) bytes |= std::to_integer<uint32_t>(length[b]) << (8 * b);
      if (bytes > size - at - 4) throw BadPage{"a value that ends behind its page", "it within"};
      result.places.push_back(static_cast<uint32_t>(at + 4));
      at += 4 + uint64_t{bytes};
    }
    result.places.push_back(static_cast<uint32_t>(at + 4));
    return result;
  }
  PageBytes bytes = read_page(file, page, column);
  if (page.dictionary) {
    result.places = read_indices(bytes.values(), page.values, chunk.dictionary->values);
    return result;
  }
  result.places = find_strings(bytes.values(), page.values);
  result.begin = bytes.begin;
  result.bytes = std::move(bytes.bytes);
  return result;
}

std::shared_ptr<const PicturePage> PictureTable::page(const ByteFile& file, size_t group,
                                                      size_t number) const {
  const PageStore::Key key{this, group, number};
  if (auto found = store_.find(key)) return found;
  return store_.add(key, load(file, pages_of(file, group), number));
}

std::vector<std::byte> PictureTable::string_of(const ByteFile& file, const PicturePage& page,
                                               uint32_t number) const {
  const uint64_t begin = page.begin + page.places[number];
  const uint64_t size = page.places[number + 1] - page.places[number] - 4;
  if (page.bytes.empty()) return file.read(begin, size);
  const auto from = page.bytes.begin() + static_cast<ptrdiff_t>(begin);
  return {from, from + static_cast<ptrdiff_t>(size)};
}

std::vector<std::byte> PictureTable::picture(uint64_t row) const {
  const ByteFile file(path_, stamp_);
  return in_file(file, metadata_.columns[picture_column_], [&] {
    // Groups without rows are passed by.
    const auto group = static_cast<size_t>(std::ranges::upper_bound(first_, row) - first_.begin() - 1);
    const ChunkPages& chunk = pages_of(file, group);
    const uint64_t in_group = row - first_[group];
    const auto number =
        static_cast<size_t>(std::ranges::upper_bound(chunk.first, in_group) - chunk.first.begin() - 1);
    const std::shared_ptr<const PicturePage> data = page(file, group, number);
    const auto place = static_cast<uint32_t>(in_group - chunk.first[number]);
    if (!data->dictionary) return string_of(file, *data, place);
    return string_of(file, *page(file, group, of_dictionary), data->places[place]);
  });
}

}  // namespace vitrine::parquet
