// Keys by their names: in scripts, in the table of actions, and on the screen.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::desktop {

// A key with a name of several letters, or that is a sign.
struct KeyName {
  std::string_view name;
  // Keyboards have some signs on different keys: those are listened for as what typing gives, besides the key
  // or instead of it.
  enum class Typed : uint8_t { no, besides, instead } typed = Typed::no;
};
std::span<const KeyName> key_names();

// A key as ctrl+shift+NAME.
struct KeyChord {
  std::vector<std::string> modifiers;  // of "ctrl", "shift", "alt"
  std::string key;                     // a letter, a digit, or one of key_names()

  bool holds(std::string_view modifier) const;
};
bool is_key(std::string_view text);
KeyChord parse_key(std::string_view text);  // for which is_key() is true

// "Ctrl+Shift+S", "Esc".
std::string shown_key(std::string_view chord);

}  // namespace vitrine::desktop
