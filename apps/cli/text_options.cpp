#include "apps/cli/text_options.h"

#include <algorithm>
#include <string_view>

#include "runtime/util/error.h"
#include "runtime/util/mapped_file.h"
#include "runtime/util/paths.h"
#include "runtime/util/split.h"
#include "runtime/util/text.h"

namespace vitrine::cli {

void add_text_model_flags(CLI::App& command, ModelFlags& flags) {
  command
      .add_option("--model", flags.model,
                  "A CLIP or SigLIP as transformers saves it: a folder, or a name in Hugging Face's cache")
      ->required();
  add_plan_flags(command, flags);
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (const auto at = find_invalid_utf8(text)) {
    throw Error(ErrorCode::bad_file,
                shown(path) + ": byte " + std::to_string(*at) + " is no UTF-8, expected lines of text");
  }
  const std::vector<std::string_view> parts = split(text, '\n');
  std::vector<std::string> lines(parts.begin(), parts.end());
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) {
    if (line.ends_with('\r')) line.pop_back();
  }
  return lines;
}

std::vector<std::string> labels_of(const char* option, const std::string& text) {
  std::vector<std::string> labels;
  if (path_exists(text) && !is_folder(text)) {
    for (const std::string& line : lines_of(text)) {
      if (const std::string_view label = trimmed(line); !label.empty()) labels.emplace_back(label);
    }
  } else {
    labels = labels_in(text);
  }
  if (labels.empty()) {
    throw Error(ErrorCode::usage,
                std::string(option) + " " + in_quotes(text) +
                    ": found no label, expected some with commas between them, or a file of one "
                    "a line");
  }
  return labels;
}

void require_places(const std::vector<std::string>& templates) {
  for (const std::string& text : templates) {
    if (text.find("{}") == std::string::npos) {
      throw Error(ErrorCode::usage,
                  "--template " + in_quotes(text) + ": found no {}, expected one where the label goes");
    }
  }
}

TextModel open_texts(const std::filesystem::path& model) { return open_text_model(model, warn); }

TextRunnerOptions text_runner_options(const ModelFlags& flags) { return {.plan = plan_options(flags)}; }

}  // namespace vitrine::cli
