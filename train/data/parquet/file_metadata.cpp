#include "train/data/parquet/file_metadata.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/parquet/thrift_reader.h"

namespace vitrine::parquet {
namespace {

using Type = ThriftReader::Type;

constexpr std::string_view magic = "PAR1";
constexpr uint64_t tail_bytes = 8;  // the metadata's size and the magic
constexpr uint64_t most_metadata = uint64_t{256} << 20;
constexpr size_t most_depth = 32;
// Of columns and groups, and of the letters of a path: a few bytes of a file make each.
constexpr size_t most_elements = 100'000, most_path = 4096;

struct SchemaElement {
  std::string name;
  int64_t type = -1, repetition = 0, children = 0;
};

// What is there before it was looked at whether it makes sense.
struct RawChunk {
  bool elsewhere = false, has_metadata = false;
  int64_t codec = 0, values = 0, bytes = 0, data = -1, dictionary = -1;
};
struct RawGroup {
  int64_t rows = 0;
  std::vector<RawChunk> chunks;
};
struct Raw {
  int64_t rows = 0;
  std::vector<SchemaElement> schema;
  std::vector<RawGroup> groups;
  std::string hugging_face;
};

SchemaElement read_element(ThriftReader& in) {
  SchemaElement element;
  in.structure([&](int id, Type type) {
    switch (id) {
      case 1:
        element.type = in.integer(type);
        break;
      case 3:
        element.repetition = in.integer(type);
        break;
      case 4:
        element.name = in.binary(type);
        break;
      case 5:
        element.children = in.integer(type);
        break;
      default:
        in.skip(type);
    }
  });
  return element;
}

void read_column(ThriftReader& in, RawChunk& chunk) {
  chunk.has_metadata = true;
  in.structure([&](int id, Type type) {
    switch (id) {
      case 4:
        chunk.codec = in.integer(type);
        break;
      case 5:
        chunk.values = in.integer(type);
        break;
      case 7:
        chunk.bytes = in.integer(type);
        break;
      case 9:
        chunk.data = in.integer(type);
        break;
      case 11:
        chunk.dictionary = in.integer(type);
        break;
      default:
        in.skip(type);
    }
  });
}

RawChunk read_chunk(ThriftReader& in) {
  RawChunk chunk;
  in.structure([&](int id, Type type) {
    if (id == 1) {
      chunk.elsewhere = !in.binary(type).empty();
    } else if (id == 3 && type == Type::structure) {
      read_column(in, chunk);
    } else {
      in.skip(type);
    }
  });
  return chunk;
}

RawGroup read_group(ThriftReader& in) {
  RawGroup group;
  in.structure([&](int id, Type type) {
    if (id == 1) {
      in.list(type, [&](Type element) {
        if (element != Type::structure) throw BadThrift{"a column that is no structure", false};
        if (group.chunks.size() >= most_elements) throw BadThrift{"too many columns", false};
        group.chunks.push_back(read_chunk(in));
      });
    } else if (id == 3) {
      group.rows = in.integer(type);
    } else {
      in.skip(type);
    }
  });
  return group;
}

void read_key_value(ThriftReader& in, Raw& raw) {
  std::string_view key, value;
  in.structure([&](int id, Type type) {
    if (id == 1) {
      key = in.binary(type);
    } else if (id == 2) {
      value = in.binary(type);
    } else {
      in.skip(type);
    }
  });
  if (key == "huggingface") raw.hugging_face = value;
}

Raw read_raw(std::span<const std::byte> bytes) {
  Raw raw;
  ThriftReader in(bytes);
  const auto structures = [&](Type type, const auto& take) {
    in.list(type, [&](Type element) {
      if (element != Type::structure) throw BadThrift{"a list of something else than structures", false};
      take();
    });
  };
  in.structure([&](int id, Type type) {
    switch (id) {
      case 2:
        structures(type, [&] {
          if (raw.schema.size() >= most_elements) throw BadThrift{"too many columns", false};
          raw.schema.push_back(read_element(in));
        });
        break;
      case 3:
        raw.rows = in.integer(type);
        break;
      case 4:
        structures(type, [&] {
          if (raw.groups.size() >= 10 * most_elements) throw BadThrift{"too many groups of rows", false};
          raw.groups.push_back(read_group(in));
        });
        break;
      case 5:
        structures(type, [&] { read_key_value(in, raw); });
        break;
      default:
        in.skip(type);
    }
  });
  return raw;
}

// The tree of columns is written from the root on, each with the number of those below it.
class Leaves {
 public:
  Leaves(const std::vector<SchemaElement>& schema, std::vector<Column>& columns)
      : schema_(schema), columns_(columns) {}

  void read() {
    if (schema_.empty()) throw BadThrift{"no columns", false};
    const int64_t children = schema_[at_++].children;
    for (int64_t i = 0; i < children; ++i) below({}, 1);
    if (at_ != schema_.size()) throw BadThrift{"columns that are below none", false};
  }

 private:
  void below(Column column, size_t depth) {
    if (at_ >= schema_.size() || depth > most_depth) throw BadThrift{"columns that aren't there", false};
    const SchemaElement& element = schema_[at_++];
    column.path += (column.path.empty() ? "" : ".") + element.name;
    if (column.path.size() > most_path) throw BadThrift{"a column's name that is too long", false};
    column.optional += element.repetition == 1;
    column.repeated |= element.repetition == 2;
    if (element.children <= 0) {
      column.type = element.type;
      columns_.push_back(std::move(column));
      return;
    }
    for (int64_t i = 0; i < element.children; ++i) below(column, depth + 1);
  }

  const std::vector<SchemaElement>& schema_;
  std::vector<Column>& columns_;
  size_t at_ = 0;
};

Chunk checked(const ByteFile& file, const RawChunk& raw, const Column& column) {
  const std::string name = "the column " + in_quotes(column.path);
  if (raw.elsewhere) refuse(file, name + " in another file", "all of it here");
  if (!raw.has_metadata) refuse(file, name + " without metadata (is it encrypted?)", "plain columns");
  const int64_t begin = raw.dictionary > 0 ? std::min(raw.dictionary, raw.data) : raw.data;
  const auto size = static_cast<int64_t>(file.size());
  if (begin < 0 || raw.bytes < 0 || raw.values < 0 || begin > size || raw.bytes > size - begin) {
    refuse(file, name + " of " + std::to_string(raw.bytes) + " bytes at byte " + std::to_string(begin),
           "it within the file's " + std::to_string(size));
  }
  return {.codec = raw.codec,
          .begin = static_cast<uint64_t>(begin),
          .bytes = static_cast<uint64_t>(raw.bytes),
          .values = static_cast<uint64_t>(raw.values)};
}

FileMetadata checked(const ByteFile& file, const Raw& raw) {
  FileMetadata metadata;
  Leaves(raw.schema, metadata.columns).read();
  metadata.hugging_face = raw.hugging_face;
  // A picture is more than a byte, so this takes no row from anybody, and gives memory a bound.
  if (raw.rows < 0 || static_cast<uint64_t>(raw.rows) > file.size())
    refuse(file, std::to_string(raw.rows) + " rows", "at most one for each byte of the file");
  for (const RawGroup& group : raw.groups) {
    if (group.chunks.size() != metadata.columns.size()) {
      refuse(file, counted(group.chunks.size(), "column") + " in a group of rows",
             std::to_string(metadata.columns.size()));
    }
    if (group.rows < 0 || group.rows > raw.rows - static_cast<int64_t>(metadata.rows))
      refuse(file, "a group of " + std::to_string(group.rows) + " rows", "as many rows as the file has");
    RowGroup& made = metadata.groups.emplace_back();
    made.rows = static_cast<uint64_t>(group.rows);
    metadata.rows += made.rows;
    for (size_t c = 0; c < group.chunks.size(); ++c)
      made.chunks.push_back(checked(file, group.chunks[c], metadata.columns[c]));
  }
  if (static_cast<int64_t>(metadata.rows) != raw.rows)
    refuse(file, std::to_string(metadata.rows) + " rows in all groups", std::to_string(raw.rows));
  return metadata;
}

}  // namespace

std::string type_name(int64_t type) {
  constexpr std::array<std::string_view, 8> names{"BOOLEAN", "INT32",  "INT64",      "INT96",
                                                  "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
  if (type >= 0 && type < static_cast<int64_t>(names.size()))
    return std::string(names[static_cast<size_t>(type)]);
  return "type number " + std::to_string(type);
}

std::optional<size_t> FileMetadata::find(std::string_view path) const {
  const auto place = std::ranges::find(columns, path, &Column::path);
  if (place == columns.end()) return std::nullopt;
  return static_cast<size_t>(place - columns.begin());
}

void refuse(const ByteFile& file, const std::string& found, const std::string& expected) {
  throw Error(ErrorCode::bad_file, file.name() + ": found " + found + ", expected " + expected);
}

FileMetadata read_metadata(const ByteFile& file) {
  const uint64_t least = magic.size() + tail_bytes;
  if (file.size() < least)
    refuse(file, std::to_string(file.size()) + " bytes",
           "a Parquet file, which has " + std::to_string(least) + " at least");
  const std::vector<std::byte> tail = file.read(file.size() - tail_bytes, tail_bytes);
  const std::string_view end(reinterpret_cast<const char*>(tail.data()) + 4, magic.size());
  if (end == "PARE") refuse(file, "an encrypted Parquet file", "a plain one");
  if (end != magic) refuse(file, "an end of " + in_quotes(end), "\"PAR1\", as Parquet files have");
  uint32_t size = 0;
  for (size_t i = 0; i < 4; ++i) size |= std::to_integer<uint32_t>(tail[i]) << (8 * i);
  if (size > file.size() - least || size > most_metadata) {
    refuse(file, "metadata of " + std::to_string(size) + " bytes",
           "at most " + std::to_string(std::min(file.size() - least, most_metadata)));
  }
  const std::vector<std::byte> bytes = file.read(file.size() - tail_bytes - size, size);
  try {
    return checked(file, read_raw(bytes));
  } catch (const BadThrift& bad) {
    refuse(file, std::string(bad.what) + " in the metadata", "Parquet's");
  }
}

}  // namespace vitrine::parquet
