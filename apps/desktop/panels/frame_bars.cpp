// The bars above and below the views, and the list of shortcuts.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/script/shortcuts.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

void draw_model_list(const Screen& screen, Actions& actions, const Looking& looking,
                     const std::vector<ModelChoice>& models, float width) {
  ImGui::SetNextItemWidth(width);
  const std::string shown =
      fitted(looking.model_title(), width - ImGui::GetFrameHeight() - 12 * screen.scale);
  if (!ImGui::BeginCombo("##model", shown.c_str(), ImGuiComboFlags_HeightLarge)) {
    hint(("Model: " + looking.model_title()).c_str());
    return;
  }
  for (size_t i = 0; i < models.size(); ++i) {
    const ModelChoice& choice = models[i];
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::Selectable(choice.title.c_str(), looking.model_name() == choice.name))
      actions.perform(ActionId::model, {choice.name});
    ImGui::PopID();
  }
  ImGui::Separator();
  static std::array<char, 4096> path{};
  ImGui::SetNextItemWidth(-1);
  if (ImGui::InputTextWithHint("##model path", "folder or .safetensors, then Enter", path.data(), path.size(),
                               ImGuiInputTextFlags_EnterReturnsTrue) &&
      path[0] != '\0') {
    actions.perform(ActionId::model, {path.data()});
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndCombo();
}

void draw_device_list(const Screen& screen, Actions& actions, const DeviceChoice& choice,
                      const std::string& name, float width) {
  ImGui::SetNextItemWidth(width);
  const std::string shown = fitted(name, width - ImGui::GetFrameHeight() - 12 * screen.scale);
  if (!ImGui::BeginCombo("##device", shown.c_str())) {
    hint(("Device: " + name).c_str());
    return;
  }
  for (size_t i = 0; i < choice.devices.size(); ++i) {
    const WindowDevice& device = choice.devices[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::BeginDisabled(!device.family);
    if (ImGui::Selectable(device.physical.capabilities.name.c_str(), i == choice.used))
      actions.perform(ActionId::device, {std::to_string(i)});
    ImGui::EndDisabled();
    if (!device.family && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      ImGui::SetTooltip("%s", device.why_not.c_str());
    ImGui::PopID();
  }
  ImGui::EndCombo();
}

constexpr std::pair<ActionId, View> tabs[] = {
    {ActionId::look_tab, View::attention},  {ActionId::structure_tab, View::structure},
    {ActionId::profile_tab, View::profile}, {ActionId::device_tab, View::device},
    {ActionId::draw_tab, View::draw},       {ActionId::train_tab, View::train},
    {ActionId::runs_tab, View::runs}};

}  // namespace

void draw_top_bar(const Screen& screen, Actions& actions, const Looking& looking,
                  const std::vector<ModelChoice>& models, const DeviceChoice& devices, const Device& device) {
  const float scale = screen.scale;
  ImGui::PushFont(fonts().large);
  ImGui::AlignTextToFramePadding();
  const float large = ImGui::GetTextLineHeight();
  // In a narrow window the views' buttons take its place.
  const bool named = ImGui::GetContentRegionAvail().x > 780 * scale;
  if (named) ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(palette().accent), "Vitrine");
  ImGui::PopFont();
  if (named) ImGui::SameLine(0, 16 * scale);
  const float row = ImGui::GetCursorPosY() + (large - ImGui::GetFontSize()) / 2;
  ImGui::SetCursorPosY(row);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {4 * scale, 0});
  for (const auto& [tab, view] : tabs) {
    const bool on = view == screen.view() || (shows_picture(view) && shows_picture(screen.view()));
    if (toggle_button(kind_of(tab).label, on) && !on) actions.perform(tab);
    hint({tab});
    ImGui::SameLine();
    ImGui::SetCursorPosY(row);
  }
  ImGui::PopStyleVar();
  const float spacing = ImGui::GetStyle().ItemSpacing.x;
  const float small = ImGui::CalcTextSize("Light").x + 2 * ImGui::GetStyle().FramePadding.x;
  const float lists = ImGui::GetContentRegionAvail().x - small - ImGui::GetFrameHeight() - 4 * spacing;
  // Where both have no room, the device is left out: its view names it.
  const bool both = lists >= 130 * scale;
  const float model_width = std::clamp(both ? lists * 0.55f : lists, 48 * scale, 300 * scale);
  const float device_width =
      both ? std::clamp(lists - model_width - spacing, 48 * scale, 240 * scale) : -spacing;
  ImGui::SameLine(ImGui::GetWindowWidth() - ImGui::GetStyle().WindowPadding.x - model_width - device_width -
                  small - ImGui::GetFrameHeight() - 3 * spacing);
  ImGui::SetCursorPosY(row);
  draw_model_list(screen, actions, looking, models, model_width);
  if (both) {
    ImGui::SameLine();
    ImGui::SetCursorPosY(row);
    draw_device_list(screen, actions, devices, device.capabilities().name, device_width);
  }
  ImGui::SameLine();
  ImGui::SetCursorPosY(row);
  action_button(actions, ActionId::turn_theme, small, screen.dark ? "Light" : "Dark");
  ImGui::SameLine();
  ImGui::SetCursorPosY(row);
  if (ImGui::Button("?", {ImGui::GetFrameHeight(), 0})) actions.perform(ActionId::help, {"on"});
  hint({ActionId::turn_help});
}

void draw_status(const Screen& screen, Actions& actions, Notices& notices, const Worker::Status& work,
                 const std::string& summary) {
  if (!notices.errors().empty()) {
    const float button = 90 * screen.scale;
    ImGui::AlignTextToFramePadding();
    ImGui::PushStyleColor(ImGuiCol_Text, palette().bad);
    const std::string& sentence = notices.errors().front();
    const float width = ImGui::GetContentRegionAvail().x - button - 16 * screen.scale;
    ImGui::TextUnformatted(fitted(sentence, width).c_str());
    ImGui::PopStyleColor();
    ImGui::SetItemTooltip("%s", sentence.c_str());
    ImGui::SameLine(ImGui::GetWindowWidth() - button - ImGui::GetStyle().WindowPadding.x);
    const size_t more = notices.errors().size() - 1;
    if (ImGui::Button(more == 0 ? "Dismiss" : ("Next of " + std::to_string(more + 1)).c_str(), {button, 0}))
      notices.dismiss_error();
    return;
  }
  if (!work.busy) {
    ImGui::AlignTextToFramePadding();
    const std::string said = notices.said();
    faint(said.empty() ? summary : said);
    return;
  }
  ImGui::AlignTextToFramePadding();
  const std::string what = work.text.empty() ? work.what : work.what + ": " + work.text;
  const float bar = 220 * screen.scale, button = 80 * screen.scale;
  ImGui::TextUnformatted(
      fitted(what, ImGui::GetContentRegionAvail().x - bar - button - 32 * screen.scale).c_str());
  ImGui::SameLine(ImGui::GetWindowWidth() - bar - button - 28 * screen.scale);
  ImGui::ProgressBar(work.done, {bar, 0}, work.done > 0 ? nullptr : "");
  ImGui::SameLine();
  action_button(actions, ActionId::cancel, button);
}

void draw_help(const Screen& screen, Actions& actions) {
  if (!screen.help) return;
  const ImVec2 center = ImGui::GetMainViewport()->GetCenter();
  ImGui::SetNextWindowPos(center, ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::SetNextWindowFocus();
  bool open = true;
  ImGui::PushStyleColor(ImGuiCol_WindowBg, palette().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::Begin("Shortcuts", &open,
               ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoCollapse |
                   ImGuiWindowFlags_NoSavedSettings);
  if (ImGui::BeginTable("shortcuts", 2, ImGuiTableFlags_SizingFixedFit)) {
    for (const auto& [keys, meaning] : key_list()) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(palette().accent), "%s", keys.c_str());
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(meaning.c_str());
    }
    ImGui::EndTable();
  }
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  if (!open) actions.perform(ActionId::help, {"off"});
}

}  // namespace vitrine::desktop
