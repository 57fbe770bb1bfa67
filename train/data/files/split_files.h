// The files that make up a part of a data set, by their names.
#pragma once

#include <filesystem>
#include <vector>

#include "train/data/dataset.h"

namespace vitrine {

// What the parts are called, those that go first in front.
std::vector<const char*> split_names(Split split);

// PART.EXTENSION and PART-*.EXTENSION in the folder or in data/, or any *.EXTENSION in PART/ or data/PART/,
// sorted by name: of the first of these places that has any. `extension` has its dot. Error(bad_file) where
// names say that there are more ("train-00000-of-00002").
std::vector<std::filesystem::path> split_files(const std::filesystem::path& folder, Split split,
                                               std::string_view extension);

// Those of a part, where the folder holds such files at all: else none. Error(bad_file) where it has them of
// another part alone; `what` is what they are called.
std::vector<std::filesystem::path> wanted_files(const std::filesystem::path& folder, Split split,
                                                std::string_view extension, const std::string& what);

}  // namespace vitrine
