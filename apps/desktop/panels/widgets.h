// Small things that several panels draw.
#pragma once

#include <imgui.h>

#include <array>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "apps/desktop/actions.h"
#include "apps/desktop/screen.h"

namespace vitrine::desktop {

// A line of text in the color of what matters less.
void faint(std::string_view text);
void faint_wrapped(std::string_view text);
// A headline of a group.
void heading(std::string_view text);
// A tooltip on what was drawn last.
void hint(const char* text);
// The table's tooltip of these actions.
void hint(std::initializer_list<ActionId> actions);
// A button that performs an action of the table, with the tooltip that it has there, if any. Another label
// where one is given.
void action_button(Actions& actions, ActionId id, float width = 0, const char* label = nullptr);
// A button that shows whether it is on; true when it was clicked.
bool toggle_button(const char* label, bool on, float width = 0);
// A line of text to type into, as wide as the window; what stands there now, where that is not `text` any
// more. `hint` stands in an empty one.
std::optional<std::string> text_box(const char* id, const char* hint, std::string text);
// A share from 0 to 1 as a bar over the whole width, with a label on the left and a number on the right.
void share_bar(std::string_view label, double share, std::string_view number, bool strong);
// Text cut to a width, with "..." where something is missing.
std::string fitted(std::string_view text, float width);
// The rectangle of `content` in the middle of `space`, as large as fits; small contents are enlarged up to
// `most` times.
struct Placed {
  ImVec2 from, to;
};
Placed placed_inside(ImVec2 content, ImVec2 corner, ImVec2 space, float most = 1e9f);

Area area_of(ImVec2 from, ImVec2 to);
// The space that the current window has left, from where it goes on.
Area area_left();

// What printf makes of a few numbers.
template <typename... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 96> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}
// "1.25 s", "12.5 ms"; "1.4 GiB".
std::string seconds_text(double seconds);
std::string bytes_text(double bytes);

}  // namespace vitrine::desktop
