#include "train/data/files/split_files.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

using Path = std::filesystem::path;

// Files whose names end so, but for hidden ones; none where there is no folder.
std::vector<Path> files_in(const Path& folder, std::string_view extension) {
  std::vector<Path> files;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return files;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name.size() > extension.size() && name.ends_with(extension) && !name.starts_with('.') &&
        !entry->is_directory(ignored)) {
      files.push_back(entry->path());
    }
  }
  if (error)
    throw Error(ErrorCode::bad_file, "cannot read the folder " + shown(folder) + ": " + error.message());
  std::ranges::sort(files);
  return files;
}

// 2 of "train-00000-of-00002"; 0 where a name says nothing.
uint64_t said_count(const Path& file) {
  const std::string stem = file.stem().string();
  const size_t of = stem.rfind("-of-");
  if (of == std::string::npos) return 0;
  uint64_t count = 0;
  const char* end = stem.data() + stem.size();
  const auto [stop, error] = std::from_chars(stem.data() + of + 4, end, count);
  return error == std::errc() && stop == end ? count : 0;
}

void require_all(const std::vector<Path>& files) {
  for (const Path& file : files) {
    const uint64_t count = said_count(file);
    if (count == 0 || count == files.size()) continue;
    throw Error(ErrorCode::bad_file, shown(file) + ": found " + counted(files.size(), "file") +
                                         " of this part, expected the " + std::to_string(count) +
                                         " of which its name tells");
  }
}

}  // namespace

std::vector<const char*> split_names(Split split) {
  if (split == Split::train) return {"train"};
  if (split == Split::test) return {"test", "val", "validation"};
  return {"val", "validation", "test"};
}

std::vector<Path> split_files(const Path& folder, Split split, std::string_view extension) {
  for (const std::string name : split_names(split)) {
    for (const Path& place : {folder, folder / "data"}) {
      std::vector<Path> files = files_in(place, extension);
      std::erase_if(files, [&](const Path& file) {
        const std::string stem = file.stem().string();
        // "train.tar" beside "train/" is what that was unpacked from.
        std::error_code none;
        const bool unpacked = stem == name && std::filesystem::is_directory(place / name, none);
        return unpacked || (stem != name && !stem.starts_with(name + "-"));
      });
      if (files.empty()) files = files_in(place / name, extension);
      if (files.empty()) continue;
      require_all(files);
      return files;
    }
  }
  return {};
}

std::vector<Path> wanted_files(const Path& folder, Split split, std::string_view extension,
                               const std::string& what) {
  std::vector<Path> files = split_files(folder, split, extension);
  if (!files.empty()) return files;
  const Split other = split == Split::train ? Split::test : Split::train;
  if (split_files(folder, other, extension).empty()) return {};
  throw Error(ErrorCode::bad_file,
              shown(folder) + ": found " + what + " to " + (split == Split::train ? "test" : "train") +
                  " on but none to " + (split == Split::train ? "train" : "test") +
                  " on, expected both (train-*" + std::string(extension) + ", and test-* or val-*)");
}

}  // namespace vitrine
