#include "apps/desktop/keyboard.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

constexpr std::pair<std::string_view, ImGuiKey> named_keys[] = {{"left", ImGuiKey_LeftArrow},
                                                                {"right", ImGuiKey_RightArrow},
                                                                {"up", ImGuiKey_UpArrow},
                                                                {"down", ImGuiKey_DownArrow},
                                                                {"home", ImGuiKey_Home},
                                                                {"end", ImGuiKey_End},
                                                                {"pageup", ImGuiKey_PageUp},
                                                                {"pagedown", ImGuiKey_PageDown},
                                                                {"enter", ImGuiKey_Enter},
                                                                {"escape", ImGuiKey_Escape},
                                                                {"space", ImGuiKey_Space},
                                                                {"tab", ImGuiKey_Tab},
                                                                {"backspace", ImGuiKey_Backspace},
                                                                {"delete", ImGuiKey_Delete},
                                                                {"-", ImGuiKey_Minus},
                                                                {"+", ImGuiKey_Equal},
                                                                {"[", ImGuiKey_LeftBracket},
                                                                {"]", ImGuiKey_RightBracket},
                                                                {",", ImGuiKey_Comma},
                                                                {".", ImGuiKey_Period},
                                                                {"?", ImGuiKey_Slash},
                                                                {"ctrl", ImGuiMod_Ctrl},
                                                                {"shift", ImGuiMod_Shift},
                                                                {"alt", ImGuiMod_Alt}};

// An action's key, looked up once.
struct Listener {
  const ActionKind* action;
  bool ctrl, shift;
  std::string name;
  ImGuiKey key;
  KeyName::Typed typed = KeyName::Typed::no;

  bool hears() const {
    const ImGuiIO& io = ImGui::GetIO();
    const bool sign = typed != KeyName::Typed::no &&
                      std::ranges::count(io.InputQueueCharacters, static_cast<ImWchar>(name[0])) > 0;
    return sign || (typed != KeyName::Typed::instead && ImGui::IsKeyPressed(key));
  }
};

std::vector<Listener> make_listeners() {
  std::vector<Listener> listeners;
  for (const ActionKind& kind : action_kinds()) {
    const ActionKind::Shortcut& shortcut = kind.shortcut;
    if (shortcut.chord.empty() || shortcut.scope == KeyScope::nowhere) continue;
    const KeyChord chord = parse_key(shortcut.chord);
    const auto named = std::ranges::find(key_names(), chord.key, &KeyName::name);
    listeners.push_back({&kind, chord.holds("ctrl"), chord.holds("shift"), chord.key, imgui_key(chord.key)});
    if (named != key_names().end()) listeners.back().typed = named->typed;
  }
  return listeners;
}

bool is_in(KeyScope scope, View view) {
  switch (scope) {
    case KeyScope::on_pictures:
      return shows_picture(view) && !ImGui::IsAnyItemActive();
    case KeyScope::on_canvas:
      return view == View::draw;
    case KeyScope::on_training:
      return view == View::train;
    default:
      return true;
  }
}

}  // namespace

ImGuiKey imgui_key(std::string_view name) {
  const auto found = std::ranges::find(named_keys, name, &std::pair<std::string_view, ImGuiKey>::first);
  if (found != std::end(named_keys)) return found->second;
  if (name.size() == 1 && name[0] >= 'a' && name[0] <= 'z')
    return static_cast<ImGuiKey>(ImGuiKey_A + (name[0] - 'a'));
  if (name.size() == 1 && name[0] >= '0' && name[0] <= '9')
    return static_cast<ImGuiKey>(ImGuiKey_0 + (name[0] - '0'));
  if (name.size() > 1 && name[0] == 'f')
    return static_cast<ImGuiKey>(ImGuiKey_F1 + std::stoi(std::string(name.substr(1))) - 1);
  throw Error(ErrorCode::usage, "there is no key '" + std::string(name) + "'");
}

void perform_struck(Actions& actions, const Screen& screen) {
  static const std::vector<Listener> listeners = make_listeners();
  const ImGuiIO& io = ImGui::GetIO();
  if (io.WantTextInput) return;
  for (const Listener& listener : listeners) {
    if (listener.ctrl != io.KeyCtrl || !is_in(listener.action->shortcut.scope, screen.view())) continue;
    // Signs may need Shift; it is looked at where another action has the same key with it.
    const bool shift_tells = std::ranges::any_of(listeners, [&](const Listener& other) {
      return other.shift && other.ctrl == listener.ctrl && other.key == listener.key;
    });
    if (shift_tells && listener.shift != io.KeyShift) continue;
    if (listener.hears()) actions.perform(listener.action->id);
  }
}

}  // namespace vitrine::desktop
