// On the left: the pictures that are open.
#include <array>
#include <string>
#include <utility>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/script/shortcuts.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

void draw_open_popup(const Screen& screen, Actions& actions) {
  static std::array<char, 4096> path{};
  if (ImGui::BeginPopup("open path")) {
    ImGui::TextUnformatted("A picture or a folder");
    ImGui::SetNextItemWidth(420 * screen.scale);
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    const bool entered =
        ImGui::InputText("##path", path.data(), path.size(), ImGuiInputTextFlags_EnterReturnsTrue);
    ImGui::SameLine();
    if (ImGui::Button(kind_of(ActionId::open_text).label) || entered) {
      actions.perform(ActionId::open_text, {path.data()});
      ImGui::CloseCurrentPopup();
    }
    faint("Files and folders can be dropped on the window, too; " + shown_keys({ActionId::paste}) +
          " opens a copied path.");
    ImGui::EndPopup();
  }
}

// What the list has been scrolled to.
struct Followed {
  std::optional<size_t> selected;
  uint64_t order = 0;
};

void draw_item(Actions& actions, PictureLibrary& library, Thumbnails& thumbnails, const Words& words,
               bool follow, size_t index, float height, float side) {
  ImGui::PushID(static_cast<int>(index));
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const bool selected = library.selected() == index;
  if (ImGui::InvisibleButton("item", {width, height}))
    actions.perform(ActionId::select, {std::to_string(index)});
  const bool hovered = ImGui::IsItemHovered();
  if (selected && follow && !ImGui::IsItemVisible()) ImGui::SetScrollHereY();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 end{corner.x + width, corner.y + height};
  if (selected || hovered)
    list.AddRectFilled(corner, end, ImGui::GetColorU32(selected ? ImGuiCol_HeaderActive : ImGuiCol_Header),
                       5);
  const float gap = (height - side) / 2;
  const Texture* texture = thumbnails.texture(index);
  const Thumbnail& thumbnail = library.thumbnail(index);
  if (texture) {
    const ImVec2 size{static_cast<float>(texture->width()), static_cast<float>(texture->height())};
    const Placed at = placed_inside(size, {corner.x + gap, corner.y + gap}, {side, side});
    list.AddImage(texture->id(), at.from, at.to);
  } else {
    const bool broken = thumbnail.state == Thumbnail::State::broken;
    list.AddRectFilled({corner.x + gap, corner.y + gap}, {corner.x + gap + side, corner.y + gap + side},
                       palette().bar_track, 4);
    const char* mark = broken ? "!" : "...";
    const ImVec2 size = ImGui::CalcTextSize(mark);
    list.AddText({corner.x + gap + (side - size.x) / 2, corner.y + gap + (side - size.y) / 2},
                 broken ? palette().bad : palette().faint_text, mark);
  }
  const float text_left = corner.x + side + 2 * gap;
  const float text_width = end.x - text_left - gap;
  const std::string name = library.name(index);
  const float line = ImGui::GetTextLineHeight();
  list.AddText({text_left, corner.y + height / 2 - line}, palette().text, fitted(name, text_width).c_str());
  std::string below = thumbnail.state == Thumbnail::State::broken ? "can't be read" : "";
  if (thumbnail.state == Thumbnail::State::ready)
    below = std::to_string(thumbnail.width) + " x " + std::to_string(thumbnail.height);
  if (const auto similarity = words.similarity(index))
    below = formatted("%.3f", static_cast<double>(*similarity));
  list.AddText(fonts().small, fonts().small->FontSize, {text_left, corner.y + height / 2 + 2},
               palette().faint_text, below.c_str());
  if (hovered) {
    ImGui::SetTooltip("%s", thumbnail.state == Thumbnail::State::broken
                                ? thumbnail.error.c_str()
                                : library.path(index).string().c_str());
  }
  ImGui::PopID();
}

void draw_words(Screen& screen, Actions& actions, const PictureLibrary& library, const Words& words) {
  if (!words.readable()) return;
  const ActionKind& kind = kind_of(ActionId::words);
  if (const auto typed = text_box("##words", kind.label, words.words()))
    actions.perform(ActionId::words, {*typed});
  screen.areas["words"] = area_of(ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (!ImGui::IsItemActive()) hint({ActionId::words});
  if (!words.words().empty() && words.read() < library.size())
    faint(std::to_string(words.read()) + " of " + std::to_string(library.size()) + " read");
}

}  // namespace

void draw_library(Screen& screen, Actions& actions, PictureLibrary& library, Thumbnails& thumbnails,
                  const Words& words) {
  heading(library.size() == 1 ? "1 PICTURE" : std::to_string(library.size()) + " PICTURES");
  action_button(actions, ActionId::ask_what_to_open, -1);
  if (std::exchange(screen.asks_what_to_open, false)) ImGui::OpenPopup("open path");
  draw_open_popup(screen, actions);
  if (library.empty()) {
    ImGui::Spacing();
    faint_wrapped("Drop pictures or a folder on the window.");
    return;
  }
  draw_words(screen, actions, library, words);
  static Followed followed;
  const Followed before = std::exchange(followed, {library.selected(), library.order_number()});
  const bool sorted = before.order != followed.order;
  const bool follow = !sorted && before.selected != followed.selected;
  ImGui::BeginChild("pictures", {0, 0}, ImGuiChildFlags_None, ImGuiWindowFlags_NoBackground);
  // What is most like the words, wherever the selected picture has come to.
  if (sorted) ImGui::SetScrollY(0);
  const float side = 46 * screen.scale, height = side + 8 * screen.scale;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 2 * screen.scale});
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(library.size()), height + 2 * screen.scale);
  if (const auto selected = library.selected()) clipper.IncludeItemByIndex(static_cast<int>(*selected));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_item(actions, library, thumbnails, words, follow, static_cast<size_t>(i), height, side);
  }
  ImGui::PopStyleVar();
  ImGui::EndChild();
}

}  // namespace vitrine::desktop
