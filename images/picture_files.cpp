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
#include "runtime/util/system.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

std::vector<std::filesystem::path> pictures_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for_each_picture_name(folder, [&](std::string_view name) { found.push_back(folder / name); });
  std::sort(found.begin(), found.end());
  return found;
}

// As std::filesystem::path::extension has it, without a path.
std::string_view extension_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? std::string_view() : name.substr(dot);
}

bool ends_like_picture(std::string_view name) {
  constexpr std::array<std::string_view, 7> suffixes{".jpg", ".jpeg", ".jpe", ".jfif",
                                                     ".png", ".apng", ".webp"};
  const std::string_view suffix = extension_of(name);
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view known) { return std::ranges::equal(suffix, known, same); });
}

}  // namespace

bool is_called_picture(const std::filesystem::path& path) {
  return ends_like_picture(path.filename().string());
}

void for_each_picture_name(const std::filesystem::path& folder,
                           const std::function<void(std::string_view name)>& take) {
  const auto fail = [&](std::error_code error) {
    throw Error(ErrorCode::failed, "cannot read the folder " + shown(folder) + ": " + error.message());
  };
  bool any = false;
  const auto take_picture = [&](std::string_view name, system::EntryKind kind) {
    if (!ends_like_picture(name) || kind == system::EntryKind::folder) return;
    // What it is may be unknowable (a link to nowhere): then reading says so, by its name.
    std::error_code ignored;
    if (kind == system::EntryKind::unknown && std::filesystem::is_directory(folder / name, ignored)) return;
    any = true;
    take(name);
  };
  if (const std::error_code error = system::list_folder(folder, take_picture)) fail(error);
  if (!any) {
    throw Error(ErrorCode::failed, "the folder " + shown(folder) +
                                       " holds no pictures (files named *.jpg, *.jpeg, *.png or *.webp)");
  }
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
