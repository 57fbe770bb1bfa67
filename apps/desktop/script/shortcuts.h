// What the window says of keys: their list, and tooltips.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "apps/desktop/script/actions.h"

namespace vitrine::desktop {

struct KeyLine {
  std::string keys, text;
};
std::vector<KeyLine> key_list();

// "Ctrl+S"; of several "Up, Down", "[ and ]", "F1 ... F7".
std::string shown_keys(std::initializer_list<ActionId> actions);
// What the first says, with the keys of all behind it.
std::string tooltip(std::initializer_list<ActionId> actions);

}  // namespace vitrine::desktop
