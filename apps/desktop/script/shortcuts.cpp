#include "apps/desktop/script/shortcuts.h"

#include <map>
#include <span>
#include <utility>

namespace vitrine::desktop {
namespace {

std::string shown(const ActionKind& kind) {
  const ActionKind::Shortcut& shortcut = kind.shortcut;
  return shortcut.scope == KeyScope::nowhere ? std::string(shortcut.chord) : shown_key(shortcut.chord);
}

// Signs stand apart: a comma between them would look like one of them.
std::string joined(std::span<const std::string> keys) {
  if (keys.size() > 2) return keys.front() + " ... " + keys.back();
  std::string text = keys.front();
  for (const std::string& key : keys.subspan(1)) text += (key.size() == 1 ? " and " : ", ") + key;
  return text;
}

}  // namespace

std::vector<KeyLine> key_list() {
  std::map<int, std::map<int, const ActionKind*>> lines;
  for (const ActionKind& kind : action_kinds()) {
    if (kind.shortcut.line > 0) lines[kind.shortcut.line][kind.shortcut.place] = &kind;
  }
  std::vector<KeyLine> list;
  for (const auto& [line, kinds] : lines) {
    std::vector<std::string> keys;
    std::string text;
    for (const auto& [place, kind] : kinds) {
      keys.push_back(shown(*kind));
      const std::string_view said = kind->shortcut.text;
      if (!said.empty()) text += (text.empty() ? "" : ", ") + std::string(said);
    }
    list.push_back({joined(keys), std::move(text)});
  }
  return list;
}

std::string shown_keys(std::initializer_list<ActionId> actions) {
  std::vector<std::string> keys;
  for (const ActionId id : actions) keys.push_back(shown(kind_of(id)));
  return joined(keys);
}

std::string tooltip(std::initializer_list<ActionId> actions) {
  const ActionKind& first = kind_of(*actions.begin());
  const std::string keys = first.shortcut.chord.empty() ? "" : shown_keys(actions);
  // A button that shows the key needs no tooltip that does.
  if (keys.empty() || keys == first.label) return std::string(first.hint);
  return first.hint.empty() ? keys : std::string(first.hint) + " (" + keys + ")";
}

}  // namespace vitrine::desktop
