// The picture, and what is laid over it.
#include <algorithm>
#include <cmath>
#include <string>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

// The patches' part of the picture as it is placed on the screen. It may reach past the picture.
Placed patches_on_screen(const Looking::Seen& seen, const Placed& picture) {
  const float across = (picture.to.x - picture.from.x) / static_cast<float>(seen.width);
  const float down = (picture.to.y - picture.from.y) / static_cast<float>(seen.height);
  const ImVec2 from{picture.from.x + static_cast<float>(seen.region.left) * across,
                    picture.from.y + static_cast<float>(seen.region.top) * down};
  return {from,
          {from.x + static_cast<float>(seen.region.width) * across,
           from.y + static_cast<float>(seen.region.height) * down}};
}

ImU32 white(float alpha) { return ImGui::GetColorU32(ImVec4{1, 1, 1, std::clamp(alpha, 0.0f, 1.0f)}); }

// The picture, darker where the model does not look, and darker under a map.
void draw_base(const Looking::Seen& seen, const Placed& at, const Placed& patches, bool mapped) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const auto shade = [](float light) { return ImGui::GetColorU32(ImVec4{light, light, light, 1}); };
  list.AddImage(seen.texture->id(), at.from, at.to, {0, 0}, {1, 1}, shade(mapped ? 0.4f : 1.0f));
  if (!mapped) return;
  list.PushClipRect(patches.from, patches.to, true);
  list.AddImage(seen.texture->id(), at.from, at.to, {0, 0}, {1, 1}, shade(0.85f));
  list.PopClipRect();
}

void draw_map(const Looking::Maps& maps, uint64_t index, const Placed& picture, const Placed& patches,
              float opacity) {
  const float step = 1.0f / static_cast<float>(maps.count);
  // Half a texel in from the neighbouring maps, so that sampling doesn't mix them.
  const float inset = 0.5f / static_cast<float>(maps.count * maps.height);
  const float top = static_cast<float>(index) * step;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRect(picture.from, picture.to, true);
  list.AddImage(maps.texture->id(), patches.from, patches.to, {0, top + inset}, {1, top + step - inset},
                white(opacity));
  list.PopClipRect();
}

void draw_patch_grid(const ViTConfig& c, const Placed& picture, const Placed& patches) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.PushClipRect(picture.from, picture.to, true);
  const float width = patches.to.x - patches.from.x, height = patches.to.y - patches.from.y;
  for (uint64_t i = 0; i <= c.grid_width(); ++i) {
    const float x = patches.from.x + width * static_cast<float>(i) / static_cast<float>(c.grid_width());
    list.AddLine({x, patches.from.y}, {x, patches.to.y}, IM_COL32(255, 255, 255, 70));
  }
  for (uint64_t i = 0; i <= c.grid_height(); ++i) {
    const float y = patches.from.y + height * static_cast<float>(i) / static_cast<float>(c.grid_height());
    list.AddLine({patches.from.x, y}, {patches.to.x, y}, IM_COL32(255, 255, 255, 70));
  }
  list.PopClipRect();
}

Placed patch_rectangle(const ViTConfig& c, uint64_t patch, const Placed& patches) {
  const float width = (patches.to.x - patches.from.x) / static_cast<float>(c.grid_width());
  const float height = (patches.to.y - patches.from.y) / static_cast<float>(c.grid_height());
  const ImVec2 from{patches.from.x + width * static_cast<float>(patch % c.grid_width()),
                    patches.from.y + height * static_cast<float>(patch / c.grid_width())};
  return {from, {from.x + width, from.y + height}};
}

void draw_selected_patch(const ViTConfig& c, const MapSelection& selection, const Placed& patches) {
  if (!selection.token || !c.is_patch(*selection.token)) return;
  const Placed patch = patch_rectangle(c, *selection.token - c.prefix_tokens(), patches);
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRect({patch.from.x - 1, patch.from.y - 1}, {patch.to.x + 1, patch.to.y + 1}, IM_COL32(0, 0, 0, 220),
               0, 0, 4);
  list.AddRect(patch.from, patch.to, palette().accent, 0, 0, 2);
}

// A click on a patch selects its token, a click on the selected one goes back to the class token.
void handle_click(const Screen& screen, Actions& actions, Looking& looking, const Placed& picture,
                  const Placed& patches) {
  const ViTConfig& c = *looking.config();
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (mouse.x < std::max(picture.from.x, patches.from.x) || mouse.x >= std::min(picture.to.x, patches.to.x) ||
      mouse.y < std::max(picture.from.y, patches.from.y) || mouse.y >= std::min(picture.to.y, patches.to.y))
    return;
  const auto column = static_cast<uint64_t>((mouse.x - patches.from.x) / (patches.to.x - patches.from.x) *
                                            static_cast<float>(c.grid_width()));
  const auto row = static_cast<uint64_t>((mouse.y - patches.from.y) / (patches.to.y - patches.from.y) *
                                         static_cast<float>(c.grid_height()));
  const uint64_t patch =
      std::min(row, c.grid_height() - 1) * c.grid_width() + std::min(column, c.grid_width() - 1);
  const Placed hovered = patch_rectangle(c, patch, patches);
  ImGui::GetWindowDrawList()->AddRect(hovered.from, hovered.to, IM_COL32(255, 255, 255, 160));
  if (!ImGui::IsItemClicked()) return;
  MapSelection selection = looking.selection();
  const uint64_t token = c.prefix_tokens() + patch;
  selection.token = selection.token == token ? std::nullopt : std::optional(token);
  looking.select(selection);
  const View view = screen.view();
  if (view == View::answers || view == View::features || view == View::words)
    actions.perform(ActionId::attention_view);
}

void draw_single(Screen& screen, Actions& actions, Looking& looking, ImVec2 corner, ImVec2 space) {
  const Looking::Seen& seen = *looking.seen();
  const Placed at =
      placed_inside({static_cast<float>(seen.width), static_cast<float>(seen.height)}, corner, space, 16);
  const Placed patches = patches_on_screen(seen, at);
  screen.exported = screen.areas["picture"] = area_of(at.from, at.to);
  screen.areas["patches"] = area_of(patches.from, patches.to);
  const View view = screen.view();
  const Looking::Maps* maps = looking.maps(view);
  const Texture* features = view == View::features ? looking.features() : nullptr;
  const MapSelection& selection = looking.selection();
  draw_base(seen, at, patches, maps || features);
  if (maps) {
    const uint64_t index = maps->count == 1 ? 0 : selection.head.value_or(maps->count - 1);
    draw_map(*maps, std::min<uint64_t>(index, maps->count - 1), at, patches, selection.opacity);
  }
  if (features) {
    ImDrawList& list = *ImGui::GetWindowDrawList();
    list.PushClipRect(at.from, at.to, true);
    list.AddImage(features->id(), patches.from, patches.to, {0, 0}, {1, 1}, white(selection.opacity));
    list.PopClipRect();
  }
  const ViTConfig* c = looking.config();
  if (!c) return;
  if (selection.patch_grid) draw_patch_grid(*c, at, patches);
  if (maps) draw_selected_patch(*c, selection, patches);
  ImGui::SetCursorScreenPos(at.from);
  ImGui::InvisibleButton("picture", {at.to.x - at.from.x, at.to.y - at.from.y});
  handle_click(screen, actions, looking, at, patches);
}

void draw_centered(const std::string& text, ImVec2 corner, ImVec2 space) {
  const ImVec2 size = ImGui::CalcTextSize(text.c_str());
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddText({corner.x + (space.x - size.x) / 2, corner.y + (space.y - size.y) / 2}, palette().faint_text,
               text.c_str());
}

// All heads of the layer, and their mean, beside each other.
void draw_grid(Screen& screen, Actions& actions, Looking& looking, ImVec2 corner, ImVec2 space) {
  const Looking::Seen& seen = *looking.seen();
  const Looking::Maps* maps = looking.maps(View::grid);
  screen.exported = {corner.x, corner.y, space.x, space.y};
  if (!maps) {
    if (looking.left_out(View::grid))
      draw_centered("The maps come when All heads is chosen again", corner, space);
    return;
  }
  const float gap = 8 * screen.scale, line = ImGui::GetTextLineHeight() + 2 * screen.scale;
  const float aspect = static_cast<float>(seen.width) / static_cast<float>(seen.height);
  // As many columns as make the pictures largest.
  uint32_t columns = 1;
  float best = 0;
  for (uint32_t n = 1; n <= maps->count; ++n) {
    const uint32_t rows = (maps->count + n - 1) / n;
    const float width = (space.x - gap * static_cast<float>(n - 1)) / static_cast<float>(n);
    const float height = (space.y - gap * static_cast<float>(rows - 1)) / static_cast<float>(rows) - line;
    const float size = std::min(width, height * aspect);
    if (size <= best) continue;
    best = size;
    columns = n;
  }
  const uint32_t rows = (maps->count + columns - 1) / columns;
  const float width = std::max(best, 8.0f), height = width / aspect;
  const float total = static_cast<float>(columns) * width + static_cast<float>(columns - 1) * gap;
  const float left = corner.x + (space.x - total) / 2;
  const float used = static_cast<float>(rows) * (height + line) + static_cast<float>(rows - 1) * gap;
  const float first = corner.y + std::max(0.0f, (space.y - used) / 2);
  for (uint32_t i = 0; i < maps->count; ++i) {
    // The mean comes first, as in the head's slider.
    const uint32_t map = i == 0 ? maps->count - 1 : i - 1;
    const ImVec2 from{left + static_cast<float>(i % columns) * (width + gap),
                      first + static_cast<float>(i / columns) * (height + line + gap)};
    const Placed at{from, {from.x + width, from.y + height}};
    const Placed patches = patches_on_screen(seen, at);
    draw_base(seen, at, patches, true);
    draw_map(*maps, map, at, patches, looking.selection().opacity);
    if (const ViTConfig* c = looking.config()) draw_selected_patch(*c, looking.selection(), patches);
    const std::string name = i == 0 ? "mean" : "head " + std::to_string(map);
    ImGui::SetCursorScreenPos(from);
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::InvisibleButton("map", {width, height + line})) {
      MapSelection selection = looking.selection();
      selection.head = i == 0 ? std::nullopt : std::optional<uint64_t>(map);
      looking.select(selection);
      actions.perform(ActionId::attention_view);
    }
    ImGui::PopID();
    const bool chosen = looking.selection().head == (i == 0 ? std::nullopt : std::optional<uint64_t>(map));
    ImGui::GetWindowDrawList()->AddText(fonts().small, fonts().small->FontSize, {from.x, from.y + height + 2},
                                        chosen ? palette().accent : palette().faint_text,
                                        fitted(name, width).c_str());
  }
}

void draw_invitation(const Looking& looking, PictureLibrary& library, bool busy, ImVec2 corner,
                     ImVec2 space) {
  const bool waiting = busy && !library.empty();
  std::string text = waiting                ? "The model is looking..."
                     : library.empty()      ? "Drop a picture or a folder here"
                     : !looking.has_model() ? "Choose a model above"
                                            : "Choose a picture on the left, or drop another one here";
  const auto selected = library.selected();
  if (selected && !waiting && library.thumbnail(*selected).state == Thumbnail::State::broken)
    text = "This picture can't be read";
  draw_centered(text, corner, space);
}

void draw_view_buttons(const Screen& screen, Actions& actions, const Looking& looking) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {4 * screen.scale, 7 * screen.scale});
  const float edge = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  for (const ViewName& view : view_names) {
    if (!shows_picture(view.view)) break;
    const std::string title(view.title);
    // In a narrow window they go on below.
    const float width = ImGui::CalcTextSize(title.c_str()).x + 2 * ImGui::GetStyle().FramePadding.x;
    if (ImGui::GetCursorPosX() + width > edge) ImGui::NewLine();
    if (toggle_button(title.c_str(), screen.view() == view.view))
      actions.perform(ActionId::view, {std::string(view.name)});
    ImGui::SameLine();
  }
  ImGui::PopStyleVar();
  const Looking::Seen* seen = looking.seen();
  if (seen) {
    const std::string name =
        fitted(seen->path.filename().string(), ImGui::GetContentRegionAvail().x - 8 * screen.scale);
    ImGui::SameLine(0, 16 * screen.scale);
    ImGui::AlignTextToFramePadding();
    faint(name);
  } else {
    ImGui::NewLine();
  }
}

}  // namespace

void draw_picture(Screen& screen, Actions& actions, Looking& looking, PictureLibrary& library, bool busy) {
  draw_view_buttons(screen, actions, looking);
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 space = ImGui::GetContentRegionAvail();
  if (space.x < 20 || space.y < 20) return;
  if (!looking.seen()) return draw_invitation(looking, library, busy, corner, space);
  if (screen.view() == View::grid) return draw_grid(screen, actions, looking, corner, space);
  draw_single(screen, actions, looking, corner, space);
}

}  // namespace vitrine::desktop
