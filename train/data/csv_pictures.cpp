// Pictures that a table names, with their classes.
#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/util/error.h"
#include "runtime/util/text.h"
#include "train/data/class_labels.h"
#include "train/data/dataset_kinds.h"
#include "train/data/files/csv_reader.h"
#include "train/data/files/file_list.h"
#include "train/data/files/split_files.h"
#include "train/data/picture_dataset.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;

struct Table {
  FileList files;
  SpelledLabels labels;
  std::vector<uint32_t> lines;
  uint64_t checksum = 0;
};

std::string text_of(const Path& path) {
  const ByteFile file(path);
  // A path and a label of each sample that can be numbered need less.
  constexpr uint64_t most = uint64_t{1} << 36;
  if (file.size() > most)
    throw Error(ErrorCode::bad_file, file.name() + ": found " + std::to_string(file.size()) +
                                         " bytes, expected at most " + std::to_string(most));
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::optional<std::pair<size_t, size_t>> columns_of(std::span<const std::string> header) {
  const auto path = std::ranges::find(header, "path"), label = std::ranges::find(header, "label");
  if (path == header.end() || label == header.end()) return std::nullopt;
  return std::pair(static_cast<size_t>(path - header.begin()), static_cast<size_t>(label - header.begin()));
}

Table read_table(const Path& path) {
  const std::string name = shown(path), text = text_of(path);
  const auto fail = [&](uint64_t line, const std::string& what) {
    throw Error(ErrorCode::bad_file, name + ", line " + std::to_string(line) + ": " + what);
  };
  Table table;
  table.checksum = hash_of(text);
  std::optional<std::pair<size_t, size_t>> columns;
  size_t width = 0;
  read_csv(text, name, [&](std::span<const std::string> fields, uint64_t line) {
    if (width == 0) {
      width = fields.size();
      columns = columns_of(fields);
      if (!columns) fail(line, "found no columns path and label, expected both in the first line");
      return;
    }
    if (fields.size() != width)
      fail(line, "found " + counted(fields.size(), "field") + ", expected " + std::to_string(width) +
                     " as in the first line");
    const std::string &file = fields[columns->first], &label = fields[columns->second];
    if (file.empty() || file.find('\0') != std::string::npos)
      fail(line, "found the path " + in_quotes(file) + ", expected that of a picture");
    if (label.empty()) fail(line, "found no label, expected a number or the name of a class");
    table.files.add(file);
    table.labels.add(label);
    table.lines.push_back(static_cast<uint32_t>(std::min<uint64_t>(line, ~uint32_t{0})));
  });
  if (table.files.size() == 0)
    throw Error(ErrorCode::bad_file,
                name + ": found no rows, expected a header with path and label and a row for each picture");
  require_countable(name, table.files.size());
  table.files.shrink();
  return table;
}

class CsvPictures : public PictureDataset {
 public:
  CsvPictures(const Path& file, const std::optional<Path>& training, const DatasetOptions& options)
      : PictureDataset(shown(file), options), folder_(file.parent_path()) {
    Table table = read_table(file);
    files_ = std::move(table.files);
    std::optional<Table> train;
    if (training) train = read_table(*training);
    NumberedLabels numbered =
        number_labels(train ? train->labels : table.labels, table.labels, options.classes,
                      [&](uint64_t i) { return name_ + ", line " + std::to_string(table.lines[i]); });
    labels_ = std::move(numbered.labels);
    classes_ = numbered.classes;
    class_names_ = std::move(numbered.class_names);
    identity_ = "table " + std::to_string(table.checksum);
  }

  Path file(uint64_t i) const override { return path_of(i); }

 private:
  Path path_of(uint64_t i) const { return folder_ / files_[i]; }
  EncodedPicture encoded(uint64_t i) const override { return encoded_file(path_of(i)); }

  Path folder_;
  FileList files_;
};

std::optional<Path> table_of(const Path& folder, Split split) {
  for (const std::string name : split_names(split)) {
    const Path file = folder / (name + ".csv");
    std::error_code none;
    if (std::filesystem::is_regular_file(file, none)) return file;
  }
  return std::nullopt;
}

// Whether it is a table of ours, and not one that lies beside folders of pictures.
bool names_pictures(const Path& path) {
  const ByteFile file(path);
  constexpr size_t most_header = 4096;
  FileWindow window(file, most_header);
  const std::span<const std::byte> bytes = window.at(0, most_header);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text = text.substr(0, text.find('\n'));
  bool found = false;
  try {
    read_csv(text.ends_with('\r') ? text.substr(0, text.size() - 1) : text, shown(path),
             [&](std::span<const std::string> fields, uint64_t) { found = columns_of(fields).has_value(); });
  } catch (const Error&) {
    return false;
  }
  return found;
}

bool has_folder(const Path& folder, Split split) {
  std::error_code none;
  return std::ranges::any_of(split_names(split), [&](const char* name) {
    return std::filesystem::is_directory(folder / name, none);
  });
}

}  // namespace

std::unique_ptr<Dataset> open_csv(const Path& folder, Split split, const DatasetOptions& options) {
  const std::optional<Path> train = table_of(folder, Split::train),
                            test = table_of(folder, split == Split::train ? Split::test : split);
  if (!train && !test) return nullptr;
  if (has_folder(folder, Split::train) || has_folder(folder, Split::test)) {
    if (!(train && names_pictures(*train)) && !(test && names_pictures(*test))) return nullptr;
  }
  const std::optional<Path>& wanted = split == Split::train ? train : test;
  if (!wanted) {
    throw Error(
        ErrorCode::bad_file,
        shown(folder) + (split == Split::train
                             ? ": found test.csv or val.csv but no train.csv, expected both"
                             : ": found train.csv but neither test.csv nor val.csv, expected one of them"));
  }
  return std::make_unique<CsvPictures>(*wanted, split == Split::train ? std::nullopt : train, options);
}

}  // namespace vitrine
