#include "apps/desktop/panels/widgets.h"

#include <algorithm>
#include <array>

#include "apps/desktop/script/shortcuts.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

void text(std::string_view value) { ImGui::TextUnformatted(value.data(), value.data() + value.size()); }

}  // namespace

void faint(std::string_view value) {
  ImGui::PushStyleColor(ImGuiCol_Text, palette().faint_text);
  text(value);
  ImGui::PopStyleColor();
}

void faint_wrapped(std::string_view value) {
  ImGui::PushTextWrapPos(0);
  faint(value);
  ImGui::PopTextWrapPos();
}

void heading(std::string_view value) {
  ImGui::PushFont(fonts().small);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().faint_text);
  text(value);
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void hint(const char* value) { ImGui::SetItemTooltip("%s", value); }

void hint(std::initializer_list<ActionId> actions) { hint(tooltip(actions).c_str()); }

void action_button(Actions& actions, ActionId id, float width, const char* label) {
  const ActionKind& kind = kind_of(id);
  if (ImGui::Button(label ? label : kind.label, {width, 0})) actions.perform(id);
  if (!kind.hint.empty()) hint({id});
}

bool toggle_button(const char* label, bool on, float width) {
  if (on) {
    ImGui::PushStyleColor(ImGuiCol_Button, palette().accent);
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, palette().accent);
    ImGui::PushStyleColor(ImGuiCol_ButtonActive, palette().accent);
    ImGui::PushStyleColor(ImGuiCol_Text, palette().accent_text);
  }
  const bool clicked = ImGui::Button(label, {width, 0});
  if (on) ImGui::PopStyleColor(4);
  return clicked;
}

std::optional<std::string> text_box(const char* id, const char* hint, std::string text) {
  const auto grow = [](ImGuiInputTextCallbackData* data) {
    auto& whole = *static_cast<std::string*>(data->UserData);
    whole.resize(static_cast<size_t>(data->BufTextLen));
    data->Buf = whole.data();
    return 0;
  };
  ImGui::SetNextItemWidth(-1);
  const bool typed = ImGui::InputTextWithHint(id, hint, text.data(), text.capacity() + 1,
                                              ImGuiInputTextFlags_CallbackResize, grow, &text);
  if (!typed) return std::nullopt;
  return text.c_str();
}

void share_bar(std::string_view label, double share, std::string_view number, bool strong) {
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 number_size = ImGui::CalcTextSize(number.data(), number.data() + number.size());
  const std::string shown = fitted(label, width - number_size.x - ImGui::GetStyle().ItemSpacing.x);
  if (strong) {
    text(shown);
  } else {
    faint(shown);
  }
  if (shown.size() != label.size()) hint(std::string(label).c_str());
  ImGui::SameLine(width - number_size.x + ImGui::GetCursorStartPos().x);
  if (strong) {
    text(number);
  } else {
    faint(number);
  }
  const float height = std::max(4.0f, ImGui::GetFontSize() * 0.35f);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(at, {at.x + width, at.y + height}, palette().bar_track, height / 2);
  const float filled = width * static_cast<float>(std::clamp(share, 0.0, 1.0));
  if (filled >= 1)
    list.AddRectFilled(at, {at.x + std::max(filled, height), at.y + height},
                       strong ? palette().accent : palette().bar, height / 2);
  ImGui::Dummy({width, height + ImGui::GetStyle().ItemSpacing.y * 0.4f});
}

std::string fitted(std::string_view value, float width) {
  const auto measure = [](std::string_view part) {
    return ImGui::CalcTextSize(part.data(), part.data() + part.size()).x;
  };
  if (measure(value) <= width) return std::string(value);
  const float dots = measure("...");
  size_t end = value.size();
  while (end > 0 && measure(value.substr(0, end)) + dots > width) {
    --end;
    while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xc0) == 0x80) --end;  // whole UTF-8 letters
  }
  return std::string(value.substr(0, end)) + "...";
}

Placed placed_inside(ImVec2 content, ImVec2 corner, ImVec2 space, float most) {
  const float factor = std::min({space.x / content.x, space.y / content.y, most});
  const ImVec2 size{content.x * factor, content.y * factor};
  const ImVec2 from{corner.x + (space.x - size.x) / 2, corner.y + (space.y - size.y) / 2};
  return {from, {from.x + size.x, from.y + size.y}};
}

Area area_of(ImVec2 from, ImVec2 to) { return {from.x, from.y, to.x - from.x, to.y - from.y}; }

Area area_left() {
  const ImVec2 corner = ImGui::GetCursorScreenPos(), space = ImGui::GetContentRegionAvail();
  return {corner.x, corner.y, space.x, space.y};
}

std::string seconds_text(double seconds) {
  if (seconds >= 3600)
    return formatted("%d h %02d min", static_cast<int>(seconds / 3600), static_cast<int>(seconds / 60) % 60);
  if (seconds >= 100)
    return formatted("%d min %02d s", static_cast<int>(seconds / 60), static_cast<int>(seconds) % 60);
  if (seconds >= 1) return formatted("%.2f s", seconds);
  if (seconds >= 1e-3) return formatted("%.1f ms", seconds * 1e3);
  return formatted("%.1f \xc2\xb5s", seconds * 1e6);
}

std::string bytes_text(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return formatted(unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

}  // namespace vitrine::desktop
