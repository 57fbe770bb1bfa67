#include "train/data/parquet/pages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "runtime/util/text.h"
#include "train/data/parquet/thrift_reader.h"

namespace vitrine::parquet {
namespace {

using Type = ThriftReader::Type;

constexpr size_t usual_header = 512, most_header = size_t{16} << 20;

struct Header {
  int64_t type = -1, size = -1, stored = -1;
  int64_t values = 0, encoding = -1;
  int64_t definition_bytes = 0, repetition_bytes = 0;
  int64_t compressed = 1;  // of the second version
  size_t length = 0;       // of itself
};

Header parse_header(std::span<const std::byte> bytes) {
  Header header;
  ThriftReader in(bytes);
  // The fields that the kinds of pages have: values and encoding lie elsewhere in the second version's.
  const auto fields = [&](bool second) {
    in.structure([&](int id, Type type) {
      if (id == 1) {
        header.values = in.integer(type);
      } else if (id == (second ? 4 : 2)) {
        header.encoding = in.integer(type);
      } else if (second && id == 5) {
        header.definition_bytes = in.integer(type);
      } else if (second && id == 6) {
        header.repetition_bytes = in.integer(type);
      } else if (second && id == 7) {
        header.compressed = in.integer(type);
      } else {
        in.skip(type);
      }
    });
  };
  in.structure([&](int id, Type type) {
    if (id == 1) {
      header.type = in.integer(type);
    } else if (id == 2) {
      header.size = in.integer(type);
    } else if (id == 3) {
      header.stored = in.integer(type);
    } else if ((id == 5 || id == 7 || id == 8) && type == Type::structure) {
      fields(id == 8);
    } else {
      in.skip(type);
    }
  });
  header.length = in.position();
  return header;
}

// Most headers are short; one with statistics of pictures may be long.
Header read_header(FileWindow& window, uint64_t at, uint64_t left) {
  for (size_t bytes = usual_header;; bytes *= 8) {
    const auto here = static_cast<size_t>(std::min<uint64_t>({bytes, left, most_header}));
    try {
      return parse_header(window.at(at, here));
    } catch (const BadThrift& bad) {
      if (!bad.ends_early || here < bytes) throw;
    }
  }
}

std::string encoding_name(int64_t encoding) {
  constexpr std::array<std::string_view, 10> names{"PLAIN",
                                                   "number 1",
                                                   "PLAIN_DICTIONARY",
                                                   "RLE",
                                                   "BIT_PACKED",
                                                   "DELTA_BINARY_PACKED",
                                                   "DELTA_LENGTH_BYTE_ARRAY",
                                                   "DELTA_BYTE_ARRAY",
                                                   "RLE_DICTIONARY",
                                                   "BYTE_STREAM_SPLIT"};
  if (encoding >= 0 && encoding < static_cast<int64_t>(names.size()))
    return std::string(names[static_cast<size_t>(encoding)]);
  return "number " + std::to_string(encoding);
}

constexpr int64_t data_page = 0, dictionary_page = 2, second_data_page = 3;

class Finder {
 public:
  Finder(const ByteFile& file, const Chunk& chunk, const Column& column)
      : file_(file), chunk_(chunk), column_(column) {}

  ChunkPages find(uint64_t rows) {
    if (!is_known(chunk_.codec)) {
      fail("the codec " + codec_name(chunk_.codec), "UNCOMPRESSED, SNAPPY, GZIP or ZSTD");
    }
    FileWindow window(file_, usual_header);
    uint64_t at = chunk_.begin, row = 0;
    const uint64_t end = chunk_.begin + chunk_.bytes;
    while (row < rows) {
      if (at >= end) fail(std::to_string(row) + " values", std::to_string(rows));
      const Header header = read_header(window, at, end - at);
      at += header.length;
      if (header.stored < 0 || header.size < 0 || header.size > std::numeric_limits<int32_t>::max() ||
          header.stored > std::numeric_limits<int32_t>::max() ||
          static_cast<uint64_t>(header.stored) > end - at) {
        fail("a page of " + std::to_string(header.stored) + " bytes", "at most " + std::to_string(end - at));
      }
      add(header, at, rows - row);
      if (header.type == data_page || header.type == second_data_page) {
        row += static_cast<uint64_t>(header.values);
        pages_.first.push_back(row);
      }
      at += static_cast<uint64_t>(header.stored);
    }
    pages_.first.insert(pages_.first.begin(), 0);
    return std::move(pages_);
  }

 private:
  void add(const Header& header, uint64_t at, uint64_t rows_left) {
    const bool is_data = header.type == data_page || header.type == second_data_page,
               is_dictionary = header.type == dictionary_page;
    if (!is_data && !is_dictionary) return;  // an index, or what a later format has
    const bool plain = header.encoding == static_cast<int64_t>(Encoding::plain),
               dictionary = header.encoding == static_cast<int64_t>(Encoding::plain_dictionary) ||
                            header.encoding == static_cast<int64_t>(Encoding::rle_dictionary);
    // A dictionary's own values are plain, whatever it is called.
    if (!plain && !dictionary)
      fail("the encoding " + encoding_name(header.encoding), "PLAIN or RLE_DICTIONARY");
    if (header.values < 0 || (is_data && static_cast<uint64_t>(header.values) > rows_left) ||
        header.values > std::numeric_limits<int32_t>::max()) {
      fail("a page of " + std::to_string(header.values) + " values", "at most one a row");
    }
    Page page{.begin = at,
              .stored = static_cast<uint32_t>(header.stored),
              .size = static_cast<uint32_t>(header.size),
              .values = static_cast<uint32_t>(header.values),
              .dictionary = is_data && dictionary,
              .second = header.type == second_data_page,
              .codec = static_cast<Codec>(chunk_.codec)};
    if (page.second) {
      if (header.repetition_bytes != 0) fail("rows of several values", "one a row");
      const uint64_t least = std::min(page.stored, page.size);
      if (header.definition_bytes < 0 || static_cast<uint64_t>(header.definition_bytes) > least)
        fail("levels of " + std::to_string(header.definition_bytes) + " bytes",
             "at most a page's " + std::to_string(least));
      page.level_bytes = static_cast<uint32_t>(header.definition_bytes);
      if (!header.compressed) page.codec = Codec::none;
    }
    if (page.codec == Codec::none && page.stored != page.size)
      fail("a page of " + std::to_string(page.stored) + " bytes", "its size " + std::to_string(page.size));
    if (is_dictionary) {
      if (pages_.dictionary || !pages_.data.empty()) fail("a second dictionary", "one, in front");
      pages_.dictionary = page;
    } else {
      if (page.dictionary && !pages_.dictionary) fail("numbers of a dictionary", "it in front of them");
      pages_.data.push_back(page);
    }
  }

  [[noreturn]] void fail(const std::string& found, const std::string& expected) const {
    refuse(file_, found + " in the column " + in_quotes(column_.path), expected);
  }

  const ByteFile& file_;
  const Chunk& chunk_;
  const Column& column_;
  ChunkPages pages_;
};

uint32_t number_at(std::span<const std::byte> bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number |= std::to_integer<uint32_t>(bytes[at + i]) << (8 * i);
  return number;
}

// Whether all values are there: their levels say how much of a value's way there is.
void require_values(std::span<const std::byte> levels, const Page& page, const Column& column) {
  const auto width = static_cast<unsigned>(std::bit_width(column.optional));
  const std::vector<uint32_t> found = read_packed(levels, width, page.values);
  const auto missing = std::ranges::find_if(found, [&](uint32_t level) { return level != column.optional; });
  if (missing == found.end()) return;
  throw BadPage{"no value in place " + std::to_string(missing - found.begin()) + " of a page",
                "one in each row"};
}

constexpr size_t length_bytes = 4;

}  // namespace

ChunkPages find_pages(const ByteFile& file, const Chunk& chunk, const Column& column, uint64_t rows) {
  try {
    return Finder(file, chunk, column).find(rows);
  } catch (const BadThrift& bad) {
    refuse(file, std::string(bad.what) + " in a header of the column " + in_quotes(column.path), "Parquet's");
  }
}

PageBytes read_page(const ByteFile& file, const Page& page, const Column& column) {
  std::vector<std::byte> stored = file.read(page.begin, page.stored);
  PageBytes result;
  if (page.second) {
    const std::span<const std::byte> all(stored);
    if (column.optional > 0) require_values(all.first(page.level_bytes), page, column);
    result.bytes = decompressed(page.codec, all.subspan(page.level_bytes), page.size - page.level_bytes);
    return result;
  }
  result.bytes = page.codec == Codec::none ? std::move(stored) : decompressed(page.codec, stored, page.size);
  if (column.optional == 0) return result;
  const std::span<const std::byte> all(result.bytes);
  if (all.size() < length_bytes || number_at(all, 0) > all.size() - length_bytes)
    throw BadPage{"a page without levels", "them in front of its values"};
  const uint32_t size = number_at(all, 0);
  require_values(all.subspan(length_bytes, size), page, column);
  result.begin = length_bytes + size;
  return result;
}

uint64_t values_of_plain_page(const ByteFile& file, const Page& page, const Column& column) {
  uint64_t begin = 0, size = page.level_bytes;
  if (!page.second) {
    if (column.optional == 0) return 0;
    if (page.stored < length_bytes) throw BadPage{"a page without levels", "them in front of its values"};
    size = number_at(file.read(page.begin, length_bytes), 0);
    begin = length_bytes;
    if (size > page.stored - begin) throw BadPage{"a page without levels", "them in front of its values"};
  }
  if (column.optional > 0) require_values(file.read(page.begin + begin, size), page, column);
  return begin + size;
}

std::vector<uint32_t> read_packed(std::span<const std::byte> bytes, unsigned width, uint32_t count) {
  if (width > 32) throw BadPage{"numbers of " + std::to_string(width) + " bits", "at most 32"};
  std::vector<uint32_t> numbers;
  size_t at = 0;
  const auto bad = [] { throw BadPage{"numbers that end too early", "one for each value"}; };
  while (numbers.size() < count) {
    uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
      if (at >= bytes.size() || shift > 28) bad();
      const auto next = std::to_integer<uint64_t>(bytes[at++]);
      head |= (next & 0x7f) << shift;
      if (next < 0x80) break;
    }
    const uint64_t left = count - numbers.size();
    if (head & 1) {  // eights, of which the last may be filled up
      const uint64_t packed = (head >> 1) * width;
      if (packed > bytes.size() - at || head == 1) bad();
      const uint64_t here = std::min(left, (head >> 1) * 8);
      uint64_t buffer = 0;
      unsigned bits = 0;
      size_t from = at;
      for (uint64_t i = 0; i < here; ++i) {
        while (bits < width) {
          buffer |= std::to_integer<uint64_t>(bytes[from++]) << bits;
          bits += 8;
        }
        numbers.push_back(static_cast<uint32_t>(buffer & ((uint64_t{1} << width) - 1)));
        buffer >>= width;
        bits -= width;
      }
      at += static_cast<size_t>(packed);
    } else {
      const size_t size = (width + 7) / 8;
      if (size > bytes.size() - at || head == 0) bad();
      uint32_t value = 0;
      for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint32_t>(bytes[at + i]) << (8 * i);
      at += size;
      numbers.insert(numbers.end(), std::min(left, head >> 1), value);
    }
  }
  return numbers;
}

std::vector<uint32_t> read_indices(std::span<const std::byte> values, uint32_t count, uint32_t below) {
  if (values.empty()) throw BadPage{"a page without numbers of values", "them behind their width"};
  std::vector<uint32_t> indices = read_packed(values.subspan(1), std::to_integer<unsigned>(values[0]), count);
  if (std::ranges::any_of(indices, [&](uint32_t i) { return i >= below; }))
    throw BadPage{"the number of a value that isn't in the dictionary", "one below " + std::to_string(below)};
  return indices;
}

std::vector<int64_t> read_integers(std::span<const std::byte> values, ValueType type, uint32_t count) {
  const size_t size = type == ValueType::i32 ? 4 : 8;
  if (values.size() / size < count)
    throw BadPage{"a page of " + std::to_string(values.size()) + " bytes", counted(count, "number")};
  std::vector<int64_t> numbers;
  numbers.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t low = number_at(values, i * size);
    numbers.push_back(size == 4
                          ? static_cast<int32_t>(low)
                          : static_cast<int64_t>(uint64_t{number_at(values, i * size + 4)} << 32 | low));
  }
  return numbers;
}

std::vector<uint32_t> find_strings(std::span<const std::byte> values, uint32_t count) {
  std::vector<uint32_t> begins;
  if (values.size() / length_bytes < count)
    throw BadPage{"a page of " + std::to_string(values.size()) + " bytes", counted(count, "value")};
  begins.reserve(count + size_t{1});
  size_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (values.size() - at < length_bytes || number_at(values, at) > values.size() - at - length_bytes)
      throw BadPage{"a value that ends behind its page", "it within"};
    at += length_bytes;
    begins.push_back(static_cast<uint32_t>(at));
    at += number_at(values, at - length_bytes);
  }
  begins.push_back(static_cast<uint32_t>(at + length_bytes));
  return begins;
}

}  // namespace vitrine::parquet
