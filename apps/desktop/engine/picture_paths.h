// From what somebody dropped, pasted or named to the picture files that are meant.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace vitrine::desktop {

// Text from the clipboard as paths: one a line, or several in quotes or as file:// addresses in a line.
// Quotes and blanks around a path, the backslashes that terminals put in front of blanks, %20 and a leading
// ~/ are taken care of; whether there is such a file is not looked at. Empty for text without anything in it;
// Error(failed) for an address on the web.
std::vector<std::filesystem::path> paths_in_text(std::string_view text);

// The order in which people expect files: 2 before 10, whatever the case of letters.
bool comes_before(std::string_view a, std::string_view b);

// The pictures in a folder (not in folders inside), sorted: files that are called .jpg, .png, .webp and the
// like, and files that begin as those do. Error(failed) for a folder without any or that can't be read.
std::vector<std::filesystem::path> pictures_in_folder(const std::filesystem::path& folder);

// What a list of dropped files and folders stands for, sorted. A file stands for itself, whatever it is.
std::vector<std::filesystem::path> pictures_of(std::vector<std::filesystem::path> named);

}  // namespace vitrine::desktop
