#include "apps/desktop/script/script.h"

#include <fstream>
#include <iterator>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

constexpr size_t most_bytes = size_t{1} << 20;

bool is_blank(char character) { return character == ' ' || character == '\t' || character == '\r'; }

std::vector<std::string> words_of(std::string_view line, const std::string& where) {
  std::vector<std::string> words;
  size_t at = 0;
  while (true) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size() || line[at] == '#') return words;
    std::string word;
    if (line[at] != '"') {
      while (at < line.size() && !is_blank(line[at])) word += line[at++];
      words.push_back(std::move(word));
      continue;
    }
    const size_t begin = at++;
    while (at < line.size() && line[at] != '"') {
      if (line[at] == '\\' && at + 1 < line.size() && (line[at + 1] == '"' || line[at + 1] == '\\')) ++at;
      word += line[at++];
    }
    const std::string found = where + ": found " + in_quotes(line.substr(begin));
    if (at == line.size()) throw Error(ErrorCode::usage, found + ", expected a quote that ends the word");
    ++at;
    if (at < line.size() && !is_blank(line[at]))
      throw Error(ErrorCode::usage, found + ", expected a blank behind the word in quotes");
    words.push_back(std::move(word));
  }
}

}  // namespace

Script parse_script(std::string_view text, const std::string& name) {
  Script script{name, {}};
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string where = name + ", line " + std::to_string(line);
    const auto words = words_of(text.substr(0, end), where);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (!words.empty()) script.actions.push_back(parse_action(words, where, line));
  }
  return script;
}

Script read_script(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  if (!file || std::filesystem::is_directory(path, error))
    throw Error(ErrorCode::usage, shown(path) + ": can't be read, expected a script");
  std::string text;
  for (char buffer[4096]; file && text.size() <= most_bytes;) {
    file.read(buffer, sizeof buffer);
    text.append(buffer, static_cast<size_t>(file.gcount()));
  }
  if (text.size() > most_bytes)
    throw Error(ErrorCode::usage, shown(path) + ": found more than a megabyte, expected a script");
  return parse_script(text, shown(path));
}

}  // namespace vitrine::desktop
