// Where the time of an inference goes: a flame bar of the model's parts, and a table of operators.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <string>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

// Lasting colors for names: the same part has the same color in every block.
ImU32 color_of_name(const std::string& name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) {
    if (c >= '0' && c <= '9') continue;
    hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  }
  // Warm hues, as everything else; light enough for dark letters.
  const float hue = 0.02f + 0.16f * static_cast<float>(hash % 997) / 997.0f;
  const float value = 0.72f + 0.24f * static_cast<float>((hash >> 12) % 97) / 97.0f;
  return ImColor::HSV(hue, 0.62f, value);
}

std::string share_text(double seconds, double total) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", total > 0 ? 100 * seconds / total : 0.0);
  return text.data();
}

// What part of the time is shown: a click on a bar makes it fill the width.
struct Zoom {
  double start = 0, seconds = 0;
  const void* of = nullptr;  // the profile
};

void draw_flame(const ProfileResult& profile, float height_of_row) {
  static Zoom zoom;
  if (zoom.of != &profile || zoom.seconds <= 0 || zoom.start + zoom.seconds > profile.total_seconds * 1.0001)
    zoom = {0, profile.total_seconds, &profile};
  uint32_t depths = 0;
  for (const ProfileBar& bar : profile.bars) depths = std::max(depths, bar.depth + 1);
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  ImGui::InvisibleButton("flame", {width, height_of_row * static_cast<float>(depths)});
  const bool inside = ImGui::IsItemHovered(), clicked = ImGui::IsItemClicked();
  list.PushClipRect(corner, {corner.x + width, corner.y + height_of_row * static_cast<float>(depths)}, true);
  for (const ProfileBar& bar : profile.bars) {
    const auto x = [&](double seconds) {
      return corner.x + width * static_cast<float>((seconds - zoom.start) / zoom.seconds);
    };
    const float left = std::max(x(bar.start), corner.x),
                right = std::min(x(bar.start + bar.seconds), corner.x + width);
    if (right - left < 0.5f) continue;
    const float top = corner.y + height_of_row * static_cast<float>(bar.depth);
    const ImVec2 to{std::max(right - 1, left + 0.5f), top + height_of_row - 1};
    const bool hovered = inside && mouse.x >= left && mouse.x < right && mouse.y >= top && mouse.y < to.y;
    list.AddRectFilled({left, top}, to, hovered ? palette().text : color_of_name(bar.name), 3);
    if (right - left > 28) {
      const std::string text = fitted(bar.name, right - left - 10);
      list.AddText({left + 5, top + (height_of_row - ImGui::GetTextLineHeight()) / 2},
                   hovered ? palette().background : IM_COL32(30, 18, 4, 255), text.c_str());
    }
    if (!hovered) continue;
    ImGui::SetTooltip("%s\n%s, %s of the inference\n%u dispatches%s%s",
                      bar.path.empty() ? bar.name.c_str() : bar.path.c_str(),
                      seconds_text(bar.seconds).c_str(),
                      share_text(bar.seconds, profile.total_seconds).c_str(), bar.dispatches,
                      bar.kernel.empty() ? "" : "\nkernel ", bar.kernel.c_str());
    if (clicked && bar.seconds > 0) zoom = {bar.start, bar.seconds, &profile};
  }
  list.PopClipRect();
}

void draw_operators(const ProfileResult& profile) {
  struct Row {
    double seconds = 0;
    uint32_t dispatches = 0;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const ProfileStep& step : profile.steps) {
    Row& row = rows[{step.operator_name, step.kernel}];
    row.seconds += step.seconds;
    ++row.dispatches;
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Row>> sorted(rows.begin(), rows.end());
  std::ranges::sort(sorted, std::ranges::greater{}, [](const auto& entry) { return entry.second.seconds; });
  if (!ImGui::BeginTable("operators", 5,
                         ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* title : {"operator", "kernel", "dispatches", "time", "share"})
    ImGui::TableSetupColumn(title);
  ImGui::TableHeadersRow();
  for (const auto& [names, row] : sorted) {
    ImGui::TableNextRow();
    for (const std::string& cell :
         {names.first, names.second, std::to_string(row.dispatches), seconds_text(row.seconds),
          share_text(row.seconds, profile.total_seconds)}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(cell.c_str());
    }
  }
  ImGui::EndTable();
}

}  // namespace

void draw_profile(Screen& screen, Actions& actions, Looking& looking, bool busy) {
  const Area& space = screen.exported = area_left();
  const auto& profile = looking.profile_result();
  if (!looking.seen())
    return faint(busy ? "The model is looking..."
                      : "Open a picture first: its inference is what gets measured.");
  if (!profile) {
    if (!looking.asked_for_profile()) looking.profile();
    if (looking.busy()) return faint("Measuring every operator...");
    if (ImGui::Button("Measure")) looking.profile();
    return;
  }
  ImGui::PushFont(fonts().large);
  ImGui::TextUnformatted((seconds_text(profile->total_seconds) + " on the device").c_str());
  ImGui::PopFont();
  ImGui::SameLine(space.width - 270 * screen.scale);
  if (ImGui::Button("Measure again", {130 * screen.scale, 0})) looking.profile();
  ImGui::SameLine();
  if (ImGui::Button("Export as CSV", {130 * screen.scale, 0})) actions.perform(ActionId::export_csv);
  faint(std::to_string(profile->steps.size()) +
        " dispatches for one image. Click on a bar to widen it, on the top one to go back.");
  ImGui::Spacing();
  draw_flame(*profile, 24 * screen.scale);
  ImGui::Spacing();
  if (const Looking::Maps* maps = looking.maps(View::attention)) {
    heading("THE MAP THAT IS SHOWN");
    ImGui::TextUnformatted((looking.layer_name(maps->choice.layer.value_or(0)) + ": " +
                            std::to_string(maps->dispatches) +
                            (maps->dispatches == 1 ? " dispatch" : " dispatches") + ", " +
                            seconds_text(maps->seconds) + ". The model did not run again for it.")
                               .c_str());
    ImGui::Spacing();
  }
  heading("OPERATORS");
  draw_operators(*profile);
}

}  // namespace vitrine::desktop
