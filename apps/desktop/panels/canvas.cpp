// A canvas to draw a digit on, and the shipped model's answer beside it.
#include <algorithm>
#include <cstdio>
#include <string>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

void draw_strokes(const DigitCanvas& canvas, ImVec2 corner, float side) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  std::vector<ImVec2> points;
  for (const Stroke& stroke : canvas.strokes()) {
    const float width = static_cast<float>(stroke.width) * side;
    points.clear();
    for (const CanvasPoint& point : stroke.points) {
      points.emplace_back(corner.x + static_cast<float>(point.x) * side,
                          corner.y + static_cast<float>(point.y) * side);
    }
    // Piece by piece: joints and ends are round.
    for (size_t i = 1; i < points.size(); ++i) list.AddLine(points[i - 1], points[i], IM_COL32_WHITE, width);
    for (const ImVec2& point : points) list.AddCircleFilled(point, width / 2, IM_COL32_WHITE);
  }
}

void handle_mouse(DigitCanvas& canvas, ImVec2 corner, float side) {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const CanvasPoint point{(mouse.x - corner.x) / side, (mouse.y - corner.y) / side};
  if (ImGui::IsItemActivated()) {
    canvas.begin_stroke(point);
  } else if (ImGui::IsItemActive() && canvas.drawing()) {
    canvas.extend_stroke(point);
  }
  if (ImGui::IsItemDeactivated()) canvas.end_stroke();
}

void draw_board(Screen& screen, DigitCanvas& canvas, float side) {
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 end{corner.x + side, corner.y + side};
  list.AddRectFilled(corner, end, IM_COL32(12, 12, 14, 255), 6);
  list.AddRect(corner, end, palette().line, 6);
  ImGui::InvisibleButton("canvas", {side, side});
  screen.areas["canvas"] = area_of(corner, end);
  handle_mouse(canvas, corner, side);
  list.PushClipRect(corner, end, true);
  draw_strokes(canvas, corner, side);
  if (canvas.empty()) {
    const char* invitation = "Draw a digit here with the mouse";
    const ImVec2 size = ImGui::CalcTextSize(invitation);
    list.AddText({corner.x + (side - size.x) / 2, corner.y + (side - size.y) / 2},
                 IM_COL32(150, 152, 158, 255), invitation);
  }
  list.PopClipRect();
}

void draw_answer(const Drawing& drawing, float side) {
  if (const auto error = drawing.error()) {
    faint_wrapped(*error);
    return;
  }
  const auto& answer = drawing.answer();
  const std::optional<size_t> best = drawing.best();
  const std::vector<std::string> labels = drawing.labels();
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::BeginGroup();
  heading("THE MODEL SAYS");
  ImGui::PushFont(fonts().large);
  ImGui::TextUnformatted(best && *best < labels.size() ? labels[*best].c_str() : " ");
  ImGui::PopFont();
  if (best) faint("answered in " + seconds_text(answer->seconds));
  ImGui::EndGroup();
  ImGui::SameLine(width - side);
  ImGui::BeginGroup();
  heading("WHAT IT SEES");
  const ImVec2 corner = ImGui::GetCursorScreenPos(), end{corner.x + side, corner.y + side};
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(corner, end, IM_COL32(12, 12, 14, 255));
  if (const Texture* seen = drawing.seen()) list.AddImage(seen->id(), corner, end);
  ImGui::Dummy({side, side});
  if (best) {
    const std::string side_text = std::to_string(answer->seen.size);
    const std::string text = side_text + " x " + side_text + " pixels: the drawing shrunk and centered, ";
    hint((text + "as the model was trained").c_str());
  }
  ImGui::EndGroup();
  ImGui::Spacing();
  for (size_t i = 0; i < labels.size(); ++i) {
    const double share =
        best && i < answer->probabilities.size() ? static_cast<double>(answer->probabilities[i]) : 0;
    char number[16] = "";
    if (best) std::snprintf(number, sizeof number, "%.1f %%", share * 100);
    share_bar(labels[i], share, number, best == i);
  }
}

}  // namespace

void draw_canvas(Screen& screen, Actions& actions, Drawing& drawing) {
  drawing.update();
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float answers = 300 * screen.scale, buttons = ImGui::GetFrameHeightWithSpacing() * 1.2f;
  const float side = std::max(120.0f, std::min(space.y - buttons, space.x - answers - 40 * screen.scale));
  const ImVec2 start = ImGui::GetCursorScreenPos();
  const float left = std::max(0.0f, (space.x - side - answers - 40 * screen.scale) / 2);
  screen.exported = area_left();

  ImGui::SetCursorScreenPos({start.x + left, start.y});
  ImGui::BeginGroup();
  draw_board(screen, drawing.canvas, side);
  ImGui::BeginDisabled(drawing.canvas.empty());
  action_button(actions, ActionId::undo);
  ImGui::SameLine();
  action_button(actions, ActionId::clear);
  ImGui::EndDisabled();
  ImGui::SameLine();
  float width = static_cast<float>(drawing.canvas.pen_width() * 100);
  ImGui::SetNextItemWidth(140 * screen.scale);
  if (ImGui::SliderFloat("##pen", &width, 2, 15, ""))
    drawing.canvas.set_pen_width(static_cast<double>(width) / 100);
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  ImGui::Text("pen %.0f %%", static_cast<double>(width));
  ImGui::EndGroup();

  ImGui::SetCursorScreenPos({start.x + left + side + 40 * screen.scale, start.y});
  ImGui::BeginChild("answer", {answers, space.y}, ImGuiChildFlags_None, ImGuiWindowFlags_NoBackground);
  draw_answer(drawing, 84 * screen.scale);
  ImGui::EndChild();
}

}  // namespace vitrine::desktop
