#include "apps/desktop/panels/plot.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {

Plot::Plot(const char* title, ImVec2 size, double last_step, const AxisScale& scale, const Label& label)
    : scale_(scale), last_(std::max(last_step, 1.0)) {
  heading(fitted(title, size.x));
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  size.y -= ImGui::GetTextLineHeightWithSpacing();
  ImGui::Dummy(size);
  hovered_ = ImGui::IsItemHovered();
  list_ = ImGui::GetWindowDrawList();
  list_->AddRectFilled(corner, {corner.x + size.x, corner.y + size.y}, ImGui::GetColorU32(ImGuiCol_FrameBg),
                       5);
  const int lines = static_cast<int>((scale_.high - scale_.low) / scale_.step + 1.5);
  std::vector<std::string> labels;
  float widest = ImGui::CalcTextSize("00.00").x;
  for (int i = 0; i < lines; ++i) {
    labels.push_back(label(scale_.low + scale_.step * i));
    widest = std::max(widest, ImGui::CalcTextSize(labels.back().c_str()).x);
  }
  const float line_height = ImGui::GetTextLineHeight();
  from_ = {corner.x + widest + 12, corner.y + std::max(10.0f, line_height / 2 + 2)};
  to_ = {corner.x + size.x - 12, corner.y + size.y - line_height - 6};
  // Of lines that lie closer than their numbers are high, every second one has none.
  const float apart = lines > 1 ? (to_.y - from_.y) / static_cast<float>(lines - 1) : line_height;
  const int every = apart >= line_height ? 1 : apart * 2 >= line_height ? 2 : std::max(lines - 1, 1);
  for (int i = 0; i < lines; ++i) {
    const float at = y(scale_.low + scale_.step * i);
    list_->AddLine({from_.x, at}, {to_.x, at}, palette().line);
    if (i % every != 0) continue;
    const ImVec2 text = ImGui::CalcTextSize(labels[static_cast<size_t>(i)].c_str());
    list_->AddText({from_.x - text.x - 6, at - text.y / 2}, palette().faint_text,
                   labels[static_cast<size_t>(i)].c_str());
  }
  const std::string end = "step " + std::to_string(static_cast<uint64_t>(last_));
  list_->AddText({to_.x - ImGui::CalcTextSize(end.c_str()).x, to_.y + 3}, palette().faint_text, end.c_str());
}

float Plot::x(double step) const {
  return from_.x + (to_.x - from_.x) * static_cast<float>(std::clamp(step / last_, 0.0, 1.0));
}
float Plot::y(double value) const {
  const double share = std::clamp((value - scale_.low) / (scale_.high - scale_.low), 0.0, 1.0);
  return to_.y - (to_.y - from_.y) * static_cast<float>(share);
}

Area Plot::area() const { return area_of(from_, to_); }

double Plot::mouse_step() const {
  const float width = std::max(to_.x - from_.x, 1.0f);
  return std::clamp((ImGui::GetMousePos().x - from_.x) / width, 0.0f, 1.0f) * last_;
}

}  // namespace vitrine::desktop
