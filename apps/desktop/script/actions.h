// What the app can be told to do, by a script's line, a key or the mouse: the table of all actions. What a
// line takes is checked before a window opens, so a run never ends halfway in a spelling mistake.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/desktop/script/keys.h"

namespace vitrine::desktop {

enum class ActionId : uint8_t {
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
  labels,
  pattern,
  words,
  stroke,
  clear,
  run,
  close_run,
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
  // For keys and buttons.
  open_text,
  ask_what_to_open,
  paste,
  select,
  look_tab,
  structure_tab,
  profile_tab,
  device_tab,
  draw_tab,
  train_tab,
  runs_tab,
  answers_view,
  attention_view,
  grid_view,
  rollout_view,
  features_view,
  words_view,
  layer_above,
  layer_below,
  head_before,
  head_after,
  back,
  less_map,
  more_map,
  next_colormap,
  turn_patch_grid,
  undo,
  go_on_training,
  pause_or_resume,
  stop_training,
  new_training,
  turn_theme,
  turn_help,
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

struct Desk;
struct MapSelection;

struct Action {
  ActionId id = ActionId::wait;
  std::vector<std::string> words;  // without the name; they fit the table
  int line = 0;                    // of the script

  // Of the words, which are numbers where the table says so.
  double number(size_t index) const;
  uint64_t whole(size_t index) const;
  bool on() const { return words.at(0) == "on"; }
  std::string word_or_none(size_t index) const { return index < words.size() ? words[index] : std::string(); }
};

// Where an action's key is listened for.
enum class KeyScope : uint8_t {
  everywhere,
  nowhere,      // done with the mouse
  on_pictures,  // in the views that show the picture, while no button is held
  on_canvas,    // in the view where digits are drawn
  on_training,
};

// One row of the table: all that is said of an action, and what it does.
struct ActionKind {
  ActionId id;

  // In scripts; without a name it is none of theirs. `takes` is what the help shows and what words are
  // checked against: forms divided by " | "; a form's words are placeholders (in capitals), choices (on|off),
  // in brackets what may be left out, and "..." after what may be repeated (Y with the X before it).
  std::string_view name = {}, takes = {}, does = {};

  // Its key, and where the list of keys has it: in which line, where in it, and what it says there (nothing,
  // where what is before it says it all). Actions that belong together share a line.
  struct Shortcut {
    std::string_view chord;  // as in scripts; or what is done with the mouse
    int line = 0, place = 0;
    std::string_view text;
    KeyScope scope = KeyScope::everywhere;
  } shortcut = {};

  // Its button, and what the tooltip says in front of the key.
  const char* label = "";
  std::string_view hint = {};

  // It does anything, or changes what is shown of the maps. Neither, where the script does it itself. What a
  // person would be told in the window is no Error.
  using Perform = void (*)(Desk& desk, const Action& action);
  using Select = void (*)(MapSelection& selection, const Action& action);
  Perform perform = nullptr;
  Select select = nullptr;

  // The same with more, for the table.
  ActionKind on_key(const Shortcut& keys) const {
    ActionKind row = *this;
    row.shortcut = keys;
    return row;
  }
  ActionKind on_button(const char* text, std::string_view tip = {}) const {
    ActionKind row = *this;
    row.label = text;
    row.hint = tip;
    return row;
  }
  ActionKind by(Perform function) const {
    ActionKind row = *this;
    row.perform = function;
    return row;
  }
  ActionKind by(Select function) const {
    ActionKind row = *this;
    row.select = function;
    return row;
  }
};
// The app defines it (apps/desktop/actions.cpp), since it knows what its actions act on.
std::span<const ActionKind> action_kinds();
const ActionKind& kind_of(ActionId id);

// From a line's words, the first of which names the action. Error(usage) in a sentence that begins with
// `where`, says what was found and what is expected.
Action parse_action(const std::vector<std::string>& words, const std::string& where, int line);

// The table as text, for --script-help and the documentation.
std::string script_help();

}  // namespace vitrine::desktop
