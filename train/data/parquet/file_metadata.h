// What a Parquet file says of itself at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/files/byte_file.h"

namespace vitrine::parquet {

// As the format numbers them.
enum class ValueType : uint8_t { i32 = 1, i64 = 2, bytes = 6 };
std::string type_name(int64_t type);

// A column that has values: a leaf of the tree of columns.
struct Column {
  std::string path;  // names from the root on, with dots between
  int64_t type = -1;
  // How many of the columns on the way may have no value; all have one where a value's level is this.
  uint32_t optional = 0;
  bool repeated = false;  // somewhere on the way
};

// A column's part of some rows.
struct Chunk {
  int64_t codec = 0;
  uint64_t begin = 0, bytes = 0;  // in the file: from its first page on
  uint64_t values = 0;
};

struct RowGroup {
  uint64_t rows = 0;
  std::vector<Chunk> chunks;  // one a column
};

struct FileMetadata {
  std::vector<Column> columns;
  std::vector<RowGroup> groups;
  uint64_t rows = 0;
  std::string hugging_face;  // what datasets has written of the columns, as JSON; or nothing

  // The number of a column.
  std::optional<size_t> find(std::string_view path) const;
};

// Error(bad_file) for a file that isn't one of Parquet, or whose parts lie where there is no file.
FileMetadata read_metadata(const ByteFile& file);

// What is said of bytes that break a rule, as an Error(bad_file) that names the file.
[[noreturn]] void refuse(const ByteFile& file, const std::string& found, const std::string& expected);

}  // namespace vitrine::parquet
