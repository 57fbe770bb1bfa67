// From what somebody named on a command line to the pictures meant.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace vitrine {

// A file stands for itself, whatever it is called: whether it is a picture is found out by reading it. A
// folder stands for the files in it (not in folders inside) whose names end in .jpg, .jpeg, .jpe, .jfif,
// .png, .apng or .webp, in upper or lower case, sorted by name. Error(failed) for a folder without such files
// or one that cannot be read. The order of `named` is kept.
std::vector<std::filesystem::path> picture_files(std::span<const std::filesystem::path> named);

// Tells `take` the name of every such file in a folder, in the order of the file system. Nothing is asked of
// a single file but where the folder doesn't say what it is. Errors as above.
void for_each_picture_name(const std::filesystem::path& folder,
                           const std::function<void(std::string_view name)>& take);

// Whether a file's name ends as those do.
bool is_called_picture(const std::filesystem::path& path);
// Whether a regular file's first bytes are those of a JPEG, PNG or WebP picture.
bool begins_like_picture(const std::filesystem::path& path);

}  // namespace vitrine
