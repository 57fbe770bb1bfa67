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

using enum ActionId;

constexpr ActionKind kinds[] = {
    {open, "open", "PATH", "shows a picture"},
    {open_folder, "open-folder", "PATH", "lists the pictures in a folder and shows the first"},
    {next, "next", "", "the next picture of the list"},
    {previous, "previous", "", "the one before"},
    {model, "model", "MODEL", "looks with another model"},
    {device, "device", "INDEX", "computes on another device, by its number in the list"},
    {view, "view", "answers|attention|grid|rollout|features|structure|profile|device|draw|train",
     "what the window shows"},
    {layer, "layer", "N", "whose attention is shown; the first one is 0"},
    {head, "head", "N | mean", "one head, or the mean of all"},
    {token, "token", "ROW COL | class", "where this patch looks, or what the answer is read from"},
    {opacity, "opacity", "SHARE", "of the heat map over the picture"},
    {colormap, "colormap", "inferno|viridis|grey", "colors of the heat map"},
    {patch_grid, "patch-grid", "on|off", "lines between patches"},
    {exif, "exif", "on|off", "turns pictures as their EXIF orientation says"},
    {stroke, "stroke", "X Y ...", "draws on the digit's canvas, whose corners are 0 0 and 1 1"},
    {clear, "clear", "", "wipes the canvas"},
    {train, "train", "CONFIG [DATA]", "starts a training, or goes on with one that was saved"},
    {pause, "pause", "", "halts the training after the step under way"},
    {resume, "resume", "", "lets it go on"},
    {save, "save", "PATH", "writes the model in training into a folder"},
    {cancel, "cancel", "", "stops what runs in the background, until it is asked for again"},
    {export_png, "export-png", "FILE", "writes what is shown as a picture"},
    {export_csv, "export-csv", "FILE", "writes the numbers that are shown"},
    {theme, "theme", "dark|light", "colors of the window"},
    {help, "help", "on|off", "the list of keys"},
    {resize, "resize", "W H", "the window, in pixels"},
    {minimise, "minimise", "", "the window, as with its button"},
    {restore, "restore", "", "the minimised window"},
    {close, "close", "", "ends the app, whatever runs"},
    {wait, "wait", "[SECONDS]",
     "until nothing runs in the background; 300 seconds at most, or as many as said"},
    {frames, "frames", "N", "draws so many frames"},
    {train_steps, "train-steps", "N", "until the training has made so many more steps"},
    {shot, "shot", "FILE", "writes the window's pixels as PNG"},
    {mouse, "mouse", "AREA | [AREA] X Y", "moves the mouse"},
    {click, "click", "AREA | [AREA] X Y", "moves it there and clicks"},
    {drag, "drag", "[AREA] X Y X Y ...", "moves it along the points with the button held"},
    {key, "key", "KEY", "strikes a key"},
    {type, "type", "TEXT", "as from a keyboard"},
    {drop, "drop", "PATH ...", "drops files and folders on the window"},
    {expect, "expect", "WHAT VALUE | WHAT =|!=|<|<=|>|>=|contains VALUE",
     "ends the run with exit status 1 where the app's state is another"},
    {until, "until", "WHAT VALUE | WHAT =|!=|<|<=|>|>=|contains VALUE",
     "waits until it is so; 300 seconds at most"},
    {dump, "dump", "WHAT FILE", "writes a part of the app's state"},
};

constexpr std::string_view named_keys[] = {
    "left", "right",     "up",     "down", "home", "end", "pageup", "pagedown", "enter", "escape", "space",
    "tab",  "backspace", "delete", "f1",   "f2",   "f3",  "f4",     "f5",       "f6",    "f7",     "f8",
    "f9",   "f10",       "f11",    "f12",  "?",    "+",   "-",      "[",        "]",     ",",      "."};
constexpr std::string_view modifier_names[] = {"ctrl", "shift", "alt"};

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
bool is_key(std::string_view word) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view modifier : modifier_names) {
      if (word.size() > modifier.size() + 1 && word.starts_with(modifier) && word[modifier.size()] == '+') {
        word.remove_prefix(modifier.size() + 1);
        found = true;
      }
    }
  }
  if (word.size() == 1 && ((word[0] >= 'a' && word[0] <= 'z') || (word[0] >= '0' && word[0] <= '9')))
    return true;
  return std::ranges::find(named_keys, word) != std::end(named_keys);
}

constexpr Placeholder placeholders[] = {
    {"PATH", "a file or folder", is_text},
    {"FILE", "a file", is_text},
    {"MODEL", "a model's folder, file or name", is_text},
    {"CONFIG", "the name of one in configs/, a file like those, or a folder with a saved training", is_text},
    {"DATA", "a data set's folder", is_text},
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

std::span<const ActionKind> action_kinds() { return kinds; }
std::span<const std::string_view> key_names() { return named_keys; }

double Action::number(size_t index) const { return to_number(words.at(index)).value(); }
uint64_t Action::whole(size_t index) const { return to_whole(words.at(index)).value(); }

Action parse_action(const std::vector<std::string>& words, const std::string& where, int line) {
  const auto kind = std::ranges::find(kinds, std::string_view(words.at(0)), &ActionKind::name);
  if (kind == std::end(kinds)) {
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

KeyChord parse_key(std::string_view text) {
  KeyChord chord;
  for (size_t plus = text.find('+'); plus != std::string_view::npos && plus > 0; plus = text.find('+')) {
    chord.modifiers.emplace_back(text.substr(0, plus));
    text.remove_prefix(plus + 1);
  }
  chord.key = text;
  return chord;
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
  for (const ActionKind& kind : kinds) {
    if (kind.id == wait) text += "\nIn scripts only:\n";
    add_row(std::string(kind.name) + (kind.takes.empty() ? "" : " ") + std::string(kind.takes), kind.does);
  }
  text += "\n";
  for (const Placeholder& placeholder : placeholders)
    add_row(std::string(placeholder.name), placeholder.means);
  std::string names = "a to z, 0 to 9";
  for (const std::string_view name : named_keys) names += ", " + std::string(name);
  text += "\nKeys: " + names + "\n";
  return text;
}

}  // namespace vitrine::desktop
