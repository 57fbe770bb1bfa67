// The commands that the project's documents show, out of their text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::test {

struct ShownCommand {
  std::string document;  // relative to the source tree
  size_t line = 0;       // where it begins
  // Without comments, lines that end with a backslash joined; a loop of the shell is one command.
  std::string text;
  bool in_block = false;  // of shell code; else between backticks in a sentence or table
};

// In the order of the text: what stands in blocks of shell code, and what begins with one of `programs`
// between backticks and has another word.
std::vector<ShownCommand> shown_commands(std::string_view text, const std::string& document,
                                         const std::vector<std::string>& programs);

// Every document of the source tree, sorted by path.
std::vector<std::filesystem::path> documents(const std::filesystem::path& tree);

// The words of a command that begin with two hyphens, without what follows "=".
std::vector<std::string> options_in(std::string_view command);

}  // namespace vitrine::test
