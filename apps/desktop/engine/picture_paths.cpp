#include "apps/desktop/engine/picture_paths.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "images/picture_files.h"
#include "runtime/util/error.h"
#include "runtime/util/split.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view blanks = " \t\r\n\v\f";

// Where folders end with a backslash, it says nothing of what follows, and addresses have a slash before the
// drive.
constexpr bool backslashes_are_folders = fs::path::preferred_separator == '\\';

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Without the escapes of an address. A percent sign that begins none stands for itself.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    const char c = escape ? static_cast<char>(16 * hex_digit(text[i + 1]) + hex_digit(text[i + 2])) : text[i];
    if (escape) i += 2;
    if (c == '\0')
      throw Error(ErrorCode::failed, in_quotes(text) + ": found a zero byte, expected a file's name");
    decoded += c;
  }
  return decoded;
}

bool is_file_address(std::string_view text) { return text.starts_with("file:/"); }

// "file:///a/b", "file://localhost/a/b" and "file:/a/b".
fs::path path_of_address(std::string_view address) {
  std::string_view rest = address.substr(5);
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    if (rest.starts_with("localhost/")) rest.remove_prefix(9);
    if (!rest.starts_with('/')) {
      throw Error(ErrorCode::failed,
                  in_quotes(address) + ": found a file of another machine, expected one of this one");
    }
  }
  if (backslashes_are_folders && rest.size() > 2 && rest[2] == ':') rest.remove_prefix(1);
  return percent_decoded(rest);
}

fs::path path_of_word(std::string_view word) {
  if (is_file_address(word)) return path_of_address(word);
  if (word.starts_with("http://") || word.starts_with("https://")) {
    throw Error(ErrorCode::failed,
                in_quotes(word) + ": found an address on the web, expected a file of this machine");
  }
  const char* home = system::variable("HOME");
  if (home && word.starts_with("~/")) return fs::path(home) / word.substr(2);
  return word;
}

// One word from `line` as a shell would read it, which is cut from the line.
std::string take_word(std::string_view& line) {
  std::string word;
  char quote = 0;
  size_t i = 0;
  for (; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (blanks.find(c) != std::string_view::npos) {
      break;
    } else if (!backslashes_are_folders && c == '\\' && i + 1 < line.size()) {
      word += line[++i];
    } else {
      word += c;
    }
  }
  line = trimmed(line.substr(i));
  return word;
}

// Without the backslashes in front of characters that mean something to a shell.
std::string without_escapes(std::string_view line) {
  if (backslashes_are_folders) return std::string(line);
  std::string plain;
  for (size_t i = 0; i < line.size(); ++i) {
    constexpr std::string_view special = " \t'\"\\()[]{}&;$!*?<>|#`~";
    if (line[i] == '\\' && i + 1 < line.size() && special.find(line[i + 1]) != std::string_view::npos) ++i;
    plain += line[i];
  }
  return plain;
}

void add_paths_of_line(std::string_view line, std::vector<fs::path>& paths) {
  const bool quoted = line.front() == '"' || line.front() == '\'';
  if (quoted && line.find(line.front(), 1) != std::string_view::npos) {
    while (!line.empty()) paths.push_back(path_of_word(take_word(line)));
  } else if (is_file_address(line)) {
    // An address holds no blanks: these are between two of them. (Some programs leave them in.)
    for (size_t next; !line.empty(); line = trimmed(line.substr(std::min(next, line.size())))) {
      next = line.find(" file:/");
      paths.push_back(path_of_word(trimmed(line.substr(0, next))));
    }
  } else {
    paths.push_back(path_of_word(without_escapes(line)));
  }
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits from `at` on, without leading zeros; `at` moves behind them.
std::string_view take_digits(std::string_view text, size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const size_t first = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(first, at - first);
}

// With slashes between folders, whatever the system's are.
void sort(std::vector<fs::path>& paths) {
  std::vector<std::pair<std::string, fs::path>> named;
  for (fs::path& path : paths) named.emplace_back(path.generic_string(), std::move(path));
  std::ranges::sort(named, [](const auto& a, const auto& b) { return comes_before(a.first, b.first); });
  for (size_t i = 0; i < paths.size(); ++i) paths[i] = std::move(named[i].second);
}

}  // namespace

std::vector<fs::path> paths_in_text(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\r\n"), text.size());
    if (const std::string_view line = trimmed(text.substr(0, end)); !line.empty()) lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  // File managers put a word in front of their lists of addresses, and such a list may have comments.
  const bool list = std::ranges::any_of(lines, is_file_address);
  std::vector<fs::path> paths;
  for (const std::string_view line : lines) {
    const bool word = line == "copy" || line == "cut" || line == "x-special/nautilus-clipboard";
    if (list && (word || line.front() == '#')) continue;
    add_paths_of_line(line, paths);
  }
  return paths;
}

bool comes_before(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view x = take_digits(a, i), y = take_digits(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    // A folder's files stay together: nothing sorts before the end of its name.
    const auto rank = [](char c) { return c == '/' ? 0 : 1 + static_cast<unsigned char>(lower(c)); };
    if (rank(a[i]) != rank(b[j])) return rank(a[i]) < rank(b[j]);
    ++i, ++j;
  }
  if (a.size() - i != b.size() - j) return i == a.size();
  return a < b;  // they differ in case or in leading zeros only
}

std::vector<fs::path> pictures_in_folder(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) continue;
    if (is_called_picture(entry->path()) || begins_like_picture(entry->path()))
      found.push_back(entry->path());
  }
  if (error)
    throw Error(ErrorCode::failed, "cannot read the folder " + shown(folder) + ": " + error.message());
  if (found.empty()) {
    throw Error(ErrorCode::failed, "the folder " + shown(folder) + " holds no JPEG, PNG or WebP pictures");
  }
  sort(found);
  return found;
}

std::vector<fs::path> pictures_of(std::vector<fs::path> named) {
  sort(named);
  std::vector<fs::path> files;
  for (const fs::path& path : named) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      const std::vector<fs::path> inside = pictures_in_folder(path);
      files.insert(files.end(), inside.begin(), inside.end());
    } else {
      files.push_back(path);
    }
  }
  return files;
}

}  // namespace vitrine::desktop
