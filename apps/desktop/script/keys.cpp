#include "apps/desktop/script/keys.h"

#include <algorithm>

namespace vitrine::desktop {
namespace {

using enum KeyName::Typed;

constexpr KeyName named_keys[] = {
    {"left"},     {"right"}, {"up"},     {"down"},  {"home"}, {"end"},        {"pageup"},
    {"pagedown"}, {"enter"}, {"escape"}, {"space"}, {"tab"},  {"backspace"},  {"delete"},
    {"f1"},       {"f2"},    {"f3"},     {"f4"},    {"f5"},   {"f6"},         {"f7"},
    {"f8"},       {"f9"},    {"f10"},    {"f11"},   {"f12"},  {"?", instead}, {"+", besides},
    {"-"},        {"["},     {"]"},      {","},     {"."}};
constexpr std::string_view modifier_names[] = {"ctrl", "shift", "alt"};

}  // namespace

std::span<const KeyName> key_names() { return named_keys; }

bool KeyChord::holds(std::string_view modifier) const {
  return std::ranges::find(modifiers, modifier) != modifiers.end();
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

bool is_key(std::string_view text) {
  const KeyChord chord = parse_key(text);
  for (const std::string& modifier : chord.modifiers) {
    if (std::ranges::find(modifier_names, modifier) == std::end(modifier_names)) return false;
  }
  if (chord.key.size() == 1) {
    const char sign = chord.key[0];
    if ((sign >= 'a' && sign <= 'z') || (sign >= '0' && sign <= '9')) return true;
  }
  return std::ranges::find(named_keys, chord.key, &KeyName::name) != std::end(named_keys);
}

std::string shown_key(std::string_view chord) {
  std::string text;
  const auto add = [&](std::string name) {
    if (name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 'a' + 'A');
    text += (text.empty() ? "" : "+") + name;
  };
  const KeyChord parsed = parse_key(chord);
  for (const std::string& modifier : parsed.modifiers) add(modifier);
  add(parsed.key == "escape" ? "esc" : parsed.key);
  return text;
}

}  // namespace vitrine::desktop
