// The pages of a column: what lies where, and what is in them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/data/files/byte_file.h"
#include "train/data/parquet/codecs.h"
#include "train/data/parquet/file_metadata.h"

namespace vitrine::parquet {

// As the format numbers them.
enum class Encoding : uint8_t { plain = 0, plain_dictionary = 2, rle_dictionary = 8 };

struct Page {
  uint64_t begin = 0;             // of what follows its header
  uint32_t stored = 0, size = 0;  // bytes: in the file, and when it isn't compressed
  uint32_t values = 0;
  bool dictionary = false;  // its values are numbers of those of the dictionary page
  // Of the second version: levels come first and are never compressed.
  bool second = false;
  uint32_t level_bytes = 0;
  Codec codec = Codec::none;
};

struct ChunkPages {
  std::optional<Page> dictionary;
  std::vector<Page> data;
  std::vector<uint64_t> first;  // row of each page, and how many there are
};

// Looks at the headers alone. Error(bad_file) that names the column for pages that aren't within it, of an
// encoding or a codec that can't be read, or of another number of rows than `rows`.
ChunkPages find_pages(const ByteFile& file, const Chunk& chunk, const Column& column, uint64_t rows);

// The values of a page, without levels and not compressed. A value that isn't there is refused: throws
// BadPage.
struct PageBytes {
  std::vector<std::byte> bytes;
  size_t begin = 0;  // of the values
  std::span<const std::byte> values() const { return std::span(bytes).subspan(begin); }
};
PageBytes read_page(const ByteFile& file, const Page& page, const Column& column);
// Where the values begin in a page that isn't compressed, from its first byte on; little of it is read.
uint64_t values_of_plain_page(const ByteFile& file, const Page& page, const Column& column);

// Numbers of `width` bits as Parquet packs them: runs of one, and eight at a time.
std::vector<uint32_t> read_packed(std::span<const std::byte> bytes, unsigned width, uint32_t count);
// Of a page whose values are numbers of others: each is below `below`.
std::vector<uint32_t> read_indices(std::span<const std::byte> values, uint32_t count, uint32_t below);
// Plain whole numbers of 4 or 8 bytes.
std::vector<int64_t> read_integers(std::span<const std::byte> values, ValueType type, uint32_t count);
// Where each of the plain strings of bytes begins, and behind the last one where another would: before each
// there are four bytes with its length.
std::vector<uint32_t> find_strings(std::span<const std::byte> values, uint32_t count);

}  // namespace vitrine::parquet
