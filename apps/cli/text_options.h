// Texts on the command line: labels, templates, files of lines, and the tower that reads them.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/cli/model_options.h"
#include "model/text/text_runner.h"

namespace vitrine::cli {

// Declares --model and the options of plans, for commands that need a model with words.
void add_text_model_flags(CLI::App& command, ModelFlags& flags);

// A file's lines without empty ones, else the text cut at its commas; white space around each goes. Throws
// Error(usage) naming `option` where nothing is left.
std::vector<std::string> labels_of(const char* option, const std::string& text);
// The lines of a file; empty ones too, as each has its row.
std::vector<std::string> lines_of(const std::filesystem::path& file);
// Throws Error(usage) for a template without {}.
void require_places(const std::vector<std::string>& templates);

// The text tower of the model that pictures go through, or of --model alone. Warnings go to stderr.
TextModel open_texts(const std::filesystem::path& model);

TextRunnerOptions text_runner_options(const ModelFlags& flags);

}  // namespace vitrine::cli
