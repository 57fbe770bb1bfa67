// What is asked of the file system, and fails in one of our sentences: the functions of std::filesystem throw
// in the library's own words.
#pragma once

#include <filesystem>

#include "runtime/util/error.h"

namespace vitrine {

// Whether there is something of this name, and whether it is a folder or a regular file. A name that can't be
// looked at (it is too long, or in a folder that may not be read) is an Error(code) that names it.
bool path_exists(const std::filesystem::path& path, ErrorCode code = ErrorCode::bad_file);
bool is_folder(const std::filesystem::path& path, ErrorCode code = ErrorCode::bad_file);
bool is_file(const std::filesystem::path& path, ErrorCode code = ErrorCode::bad_file);

// Makes the folder, and those above it, where there are none yet. Error(failed) names it.
void make_folders(const std::filesystem::path& path);

}  // namespace vitrine
