#include "apps/desktop/script/actions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>

#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

struct Placeholder {
  std::string_view name, means;
  bool (*fits)(std::string_view);
};

std::optional<double> to_number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}
std::optional<uint64_t> to_whole(std::string_view word) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value > 1'000'000'000) return {};
  return value;
}
bool is_text(std::string_view word) { return !word.empty(); }
bool is_whole(std::string_view word) { return to_whole(word).has_value(); }
bool is_number(std::string_view word) { return to_number(word).has_value(); }
bool is_within(std::string_view word, double low, double high) {
  const auto number = to_number(word);
  return number && *number >= low && *number <= high;
}

constexpr Placeholder placeholders[] = {
    {"PATH", "a file or folder", is_text},
    {"FILE", "a file", is_text},
    {"MODEL", "a model's folder, file or name", is_text},
    {"CONFIG", "the name of one in configs/, a file like those, or a folder with a saved training", is_text},
    {"DATA", "a data set's folder", is_text},
    {"RUN", "a folder that vitrine train --out writes to, or has written to", is_text},
    {"TEXT", "any text", is_text},
    {"N", "a whole number from 0", is_whole},
    {"INDEX", "a whole number from 0", is_whole},
    {"ROW", "a patch's row from 0", is_whole},
    {"COL", "a patch's column from 0", is_whole},
    {"SHARE", "a number from 0 to 1", [](std::string_view word) { return is_within(word, 0, 1); }},
    {"SECONDS", "a number from 0 to 100000",
     [](std::string_view word) { return is_within(word, 0, 100000); }},
    {"X", "a number: pixels of the window, or shares of an AREA or canvas", is_number},
    {"Y", "a number: pixels of the window, or shares of an AREA or canvas", is_number},
    {"W", "a whole number from 1 to 16384",
     [](std::string_view word) { return is_whole(word) && is_within(word, 1, 16384); }},
    {"H", "a whole number from 1 to 16384",
     [](std::string_view word) { return is_whole(word) && is_within(word, 1, 16384); }},
    {"AREA", "a part of the window by its name; its middle, where no X Y follows",
     [](std::string_view word) { return is_text(word) && !is_number(word); }},
    {"KEY", "a letter, a digit or a key's name, with ctrl+, shift+ or alt+ before it", is_key},
    {"WHAT", "a part of the app's state by its name", is_text},
    {"VALUE", "any text", [](std::string_view) { return true; }},
};

const Placeholder* find_placeholder(std::string_view name) {
  const auto found = std::ranges::find(placeholders, name, &Placeholder::name);
  return found == std::end(placeholders) ? nullptr : &*found;
}

std::vector<std::string_view> split(std::string_view text, std::string_view by) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(by), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + by.size()));
  }
  return parts;
}

bool fits(std::string_view token, std::string_view word) {
  if (const Placeholder* placeholder = find_placeholder(token)) return placeholder->fits(word);
  const std::vector<std::string_view> choices = split(token, "|");
  return std::ranges::find(choices, word) != choices.end();
}

bool fits(std::span<const std::string_view> form, std::span<const std::string> words) {
  if (form.empty()) return words.empty();
  std::string_view token = form.front();
  if (token == "...") throw std::logic_error("the table of actions has ... in front");
  if (token.starts_with('[')) {
    token = token.substr(1, token.size() - 2);
    if (fits(form.subspan(1), words)) return true;
  }
  // What is before "..." may come again.
  for (size_t group = 1; group <= 2; ++group) {
    if (form.size() != group + 1 || form.back() != "...") continue;
    if ((group == 2) != (form[group - 1] == "Y")) continue;
    if (words.size() < group || words.size() % group != 0) return false;
    for (size_t i = 0; i < words.size(); ++i) {
      if (!fits(form[i % group], words[i])) return false;
    }
    return true;
  }
  return !words.empty() && fits(token, words.front()) && fits(form.subspan(1), words.subspan(1));
}

bool fits(const ActionKind& kind, std::span<const std::string> words) {
  if (kind.takes.empty()) return words.empty();
  return std::ranges::any_of(split(kind.takes, " | "),
                             [&](std::string_view form) { return fits(split(form, " "), words); });
}

// "layer N, where N is a whole number from 0".
std::string expected(const ActionKind& kind) {
  std::string text(kind.name);
  if (kind.takes.empty()) return text + " with nothing behind it";
  text += " " + std::string(kind.takes);
  std::vector<std::string_view> told;
  for (std::string_view token : split(kind.takes, " ")) {
    if (token.starts_with('[')) token = token.substr(1, token.size() - 2);
    const Placeholder* placeholder = find_placeholder(token);
    if (!placeholder || std::ranges::find(told, token) != told.end()) continue;
    text +=
        (told.empty() ? ", where " : "; ") + std::string(token) + " is " + std::string(placeholder->means);
    told.push_back(token);
  }
  return text;
}

}  // namespace

const ActionKind& kind_of(ActionId id) { return *std::ranges::find(action_kinds(), id, &ActionKind::id); }

double Action::number(size_t index) const { return to_number(words.at(index)).value(); }
uint64_t Action::whole(size_t index) const { return to_whole(words.at(index)).value(); }

Action parse_action(const std::vector<std::string>& words, const std::string& where, int line) {
  const std::span<const ActionKind> kinds = action_kinds();
  const auto kind = std::ranges::find(kinds, std::string_view(words.at(0)), &ActionKind::name);
  if (kind == kinds.end() || kind->name.empty()) {
    throw Error(ErrorCode::usage,
                where + ": found " + in_quotes(words[0]) + ", expected an action (--script-help lists them)");
  }
  Action action{kind->id, {words.begin() + 1, words.end()}, line};
  if (!fits(*kind, action.words)) {
    std::string found = words[0];
    for (const std::string& word : action.words) found += " " + word;
    throw Error(ErrorCode::usage, where + ": found " + in_quotes(found) + ", expected " + expected(*kind));
  }
  return action;
}

std::string script_help() {
  std::string text =
      "One action a line; \"words in quotes\" may hold blanks (and \\\" and \\\\), # begins a comment.\n\n";
  const auto add_row = [&text](std::string left, std::string_view right) {
    constexpr size_t column = 28;
    if (!right.empty()) {
      if (left.size() + 2 > column) {
        text += left + "\n";
        left.clear();
      }
      left.resize(column, ' ');
      left += right;
    }
    text += left + "\n";
  };
  for (const ActionKind& kind : action_kinds()) {
    if (kind.name.empty()) continue;
    if (kind.id == ActionId::wait) text += "\nIn scripts only:\n";
    add_row(std::string(kind.name) + (kind.takes.empty() ? "" : " ") + std::string(kind.takes), kind.does);
  }
  text += "\n";
  for (const Placeholder& placeholder : placeholders)
    add_row(std::string(placeholder.name), placeholder.means);
  std::string names = "a to z, 0 to 9";
  for (const KeyName& key : key_names()) names += ", " + std::string(key.name);
  text += "\nKeys: " + names + "\n";
  return text;
}

}  // namespace vitrine::desktop
