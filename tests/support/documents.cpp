#include "tests/support/documents.h"

#include <algorithm>
#include <sstream>

namespace vitrine::test {
namespace {

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

// A "#" that begins a word ends the command.
std::string without_comment(const std::string& line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#' && (i == 0 || line[i - 1] == ' ')) {
      return trimmed(line.substr(0, i));
    }
  }
  return trimmed(line);
}

size_t words_like(const std::string& text, std::string_view wanted) {
  std::istringstream words{text};
  size_t found = 0;
  for (std::string word; words >> word;) found += word == wanted || word == std::string(wanted) + ";";
  return found;
}

bool is_shell(const std::string& fence) {
  const std::string language = trimmed(fence.substr(3));
  return language == "sh" || language == "bash" || language == "shell" || language == "console";
}

class Parser {
 public:
  Parser(const std::string& document, const std::vector<std::string>& programs)
      : document_(document), programs_(programs) {}

  std::vector<ShownCommand> parse(std::string_view text) {
    std::istringstream lines{std::string(text)};
    bool fenced = false, shell = false;
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (line.starts_with("```")) {
        end_paragraph();
        shell = !fenced && is_shell(line);
        fenced = !fenced;
      } else if (fenced) {
        if (shell) shell_line(line);
      } else if (trimmed(line).empty()) {
        end_paragraph();
      } else {
        if (paragraph_.empty()) paragraph_line_ = line_;
        paragraph_ += line + "\n";
      }
    }
    end_paragraph();
    return std::move(commands_);
  }

 private:
  void shell_line(const std::string& line) {
    std::string part = without_comment(line);
    if (part.empty()) return;
    if (pending_.empty()) {
      pending_line_ = line_;
    } else if (!joined_) {
      pending_ += '\n';
    }
    joined_ = part.ends_with('\\');
    pending_ += joined_ ? part.substr(0, part.size() - 1) : part;
    if (joined_ || words_like(pending_, "do") > words_like(pending_, "done")) return;
    commands_.push_back({document_, pending_line_, pending_, true});
    pending_.clear();
  }

  void end_paragraph() {
    size_t at = 0;
    while ((at = paragraph_.find('`', at)) != std::string::npos) {
      const size_t end = paragraph_.find('`', at + 1);
      if (end == std::string::npos) break;
      std::string span = paragraph_.substr(at + 1, end - at - 1);
      const auto line = static_cast<size_t>(
          std::count(paragraph_.begin(), paragraph_.begin() + static_cast<ptrdiff_t>(at), '\n'));
      std::ranges::replace(span, '\n', ' ');
      const bool command = std::ranges::any_of(
          programs_, [&](const std::string& program) { return span.starts_with(program + " "); });
      if (command) commands_.push_back({document_, paragraph_line_ + line, trimmed(span), false});
      at = end + 1;
    }
    paragraph_.clear();
  }

  const std::string& document_;
  const std::vector<std::string>& programs_;
  std::vector<ShownCommand> commands_;
  size_t line_ = 0, paragraph_line_ = 0, pending_line_ = 0;
  bool joined_ = false;
  std::string paragraph_, pending_;
};

}  // namespace

std::vector<ShownCommand> shown_commands(std::string_view text, const std::string& document,
                                         const std::vector<std::string>& programs) {
  return Parser(document, programs).parse(text);
}

std::vector<std::filesystem::path> documents(const std::filesystem::path& tree) {
  namespace fs = std::filesystem;
  std::vector<fs::path> found;
  for (auto at = fs::recursive_directory_iterator(tree); at != fs::recursive_directory_iterator(); ++at) {
    // Builds, and what belongs to version control.
    const std::string name = at->path().filename().string();
    if (at->is_directory() && (name == "build" || name.starts_with("."))) {
      at.disable_recursion_pending();
    } else if (at->path().extension() == ".md") {
      found.push_back(at->path());
    }
  }
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> options_in(std::string_view command) {
  std::vector<std::string> options;
  std::istringstream words{std::string(command)};
  for (std::string word; words >> word;) {
    word.erase(0, word.find_first_not_of('['));
    if (!word.starts_with("--") || word.size() == 2) continue;
    word.resize(std::min({word.size(), word.find('='), word.find(']'), word.find(';')}));
    options.push_back(word);
  }
  return options;
}

}  // namespace vitrine::test
