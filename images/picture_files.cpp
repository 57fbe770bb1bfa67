#include "images/picture_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "images/decoders.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    // What it is may be unknowable (a link to nowhere): then reading says so, by its name.
    std::error_code ignored;
    if (is_called_picture(entry->path()) && !entry->is_directory(ignored)) {
      found.push_back(entry->path());
    }
  }
  if (error)
    throw Error(ErrorCode::failed, "cannot read the folder " + shown(folder) + ": " + error.message());
  if (found.empty()) {
    throw Error(ErrorCode::failed, "the folder " + shown(folder) +
                                       " holds no pictures (files named *.jpg, *.jpeg, *.png or *.webp)");
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool is_called_picture(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 7> suffixes{".jpg", ".jpeg", ".jpe", ".jfif",
                                                     ".png", ".apng", ".webp"};
  std::string suffix = path.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return std::find(suffixes.begin(), suffixes.end(), suffix) != suffixes.end();
}

bool begins_like_picture(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 16> start{};
  file.read(start.data(), start.size());
  const FileBytes bytes = std::as_bytes(std::span(start).first(static_cast<size_t>(file.gcount())));
  return is_jpeg(bytes) || is_png(bytes) || is_webp(bytes);
}

std::vector<std::filesystem::path> picture_files(std::span<const std::filesystem::path> named) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : named) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      const std::vector<std::filesystem::path> inside = pictures_in(path);
      files.insert(files.end(), inside.begin(), inside.end());
    } else {
      files.push_back(path);
    }
  }
  return files;
}

}  // namespace vitrine
