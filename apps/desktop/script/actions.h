// What the app can be told to do, by a script's line, a key or the mouse: the table of all actions, with what
// each takes. It is checked before a window opens, so a run never ends halfway in a spelling mistake.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::desktop {

enum class ActionId : uint8_t {
  // What a person can do, too.
  open,
  open_folder,
  next,
  previous,
  model,
  device,
  view,
  layer,
  head,
  token,
  opacity,
  colormap,
  patch_grid,
  exif,
  stroke,
  clear,
  train,
  pause,
  resume,
  save,
  cancel,
  export_png,
  export_csv,
  theme,
  help,
  resize,
  minimise,
  restore,
  close,
  // What makes sense in a script only.
  wait,
  frames,
  train_steps,
  shot,
  mouse,
  click,
  drag,
  key,
  type,
  drop,
  expect,
  until,
  dump,
};

// One row of the table. `takes` is what the help shows and what words are checked against: forms divided by
// " | "; a form's words are placeholders (in capitals), choices (on|off), in brackets what may be left out,
// and "..." after what may be repeated (Y with the X before it).
struct ActionKind {
  ActionId id;
  std::string_view name;
  std::string_view takes;
  std::string_view does;
};
std::span<const ActionKind> action_kinds();

struct Action {
  ActionId id = ActionId::wait;
  std::vector<std::string> words;  // without the name; they fit the table
  int line = 0;                    // of the script

  // Of the words, which are numbers where the table says so.
  double number(size_t index) const;
  uint64_t whole(size_t index) const;
  bool on() const { return words.at(0) == "on"; }
};

// From a line's words, the first of which names the action. Error(usage) in a sentence that begins with
// `where`, says what was found and what is expected.
Action parse_action(const std::vector<std::string>& words, const std::string& where, int line);

// A key as ctrl+shift+NAME.
struct KeyChord {
  std::vector<std::string> modifiers;  // of "ctrl", "shift", "alt"
  std::string key;                     // a letter, a digit, or one of key_names()
};
KeyChord parse_key(std::string_view text);  // after the table's check
std::span<const std::string_view> key_names();

// The table as text, for --script-help and the documentation.
std::string script_help();

}  // namespace vitrine::desktop
