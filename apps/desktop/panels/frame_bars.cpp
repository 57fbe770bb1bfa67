// The bars above and below the views, and the list of shortcuts.
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "apps/desktop/app.h"
#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

void draw_model_list(App& app, float width) {
  ImGui::SetNextItemWidth(width);
  const std::string shown =
      fitted(app.looking().model_title(), width - ImGui::GetFrameHeight() - 12 * app.scale());
  if (!ImGui::BeginCombo("##model", shown.c_str(), ImGuiComboFlags_HeightLarge)) {
    hint(("Model: " + app.looking().model_title()).c_str());
    return;
  }
  for (size_t i = 0; i < app.models().size(); ++i) {
    const ModelChoice& choice = app.models()[i];
    ImGui::PushID(static_cast<int>(i));
    if (ImGui::Selectable(choice.title.c_str(), app.looking().model_name() == choice.name))
      app.choose_model(choice.name);
    ImGui::PopID();
  }
  ImGui::Separator();
  static std::array<char, 4096> path{};
  ImGui::SetNextItemWidth(-1);
  if (ImGui::InputTextWithHint("##model path", "folder or .safetensors, then Enter", path.data(), path.size(),
                               ImGuiInputTextFlags_EnterReturnsTrue) &&
      path[0] != '\0') {
    app.choose_model(path.data());
    ImGui::CloseCurrentPopup();
  }
  ImGui::EndCombo();
}

void draw_device_list(App& app, float width) {
  ImGui::SetNextItemWidth(width);
  const std::string& name = app.gpu().device->capabilities().name;
  const std::string shown = fitted(name, width - ImGui::GetFrameHeight() - 12 * app.scale());
  if (!ImGui::BeginCombo("##device", shown.c_str())) {
    hint(("Device: " + name).c_str());
    return;
  }
  for (size_t i = 0; i < app.devices().size(); ++i) {
    const WindowDevice& device = app.devices()[i];
    ImGui::PushID(static_cast<int>(i));
    ImGui::BeginDisabled(!device.family);
    if (ImGui::Selectable(device.physical.capabilities.name.c_str(), i == app.device_index()))
      app.choose_device(i);
    ImGui::EndDisabled();
    if (!device.family && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      ImGui::SetTooltip("%s", device.why_not.c_str());
    ImGui::PopID();
  }
  ImGui::EndCombo();
}

constexpr std::array<std::pair<const char*, const char*>, 20> shortcuts{
    {{"F1 ... F6", "look, structure, profile, device, draw, train"},
     {"1 ... 5", "picture, attention, all heads, rollout, features"},
     {"Left, Right", "picture before, picture after"},
     {"Up, Down", "layer above, layer below"},
     {"[ and ]", "head before, head after; the mean of all heads comes first"},
     {"click on a patch", "where that token looks"},
     {"Esc", "back to the class token; closes this list"},
     {"- and +", "less and more of the map over the picture"},
     {"M", "next color map"},
     {"G", "grid of the patches"},
     {"Ctrl+O", "open a picture or a folder"},
     {"Ctrl+V", "open the path on the clipboard"},
     {"Ctrl+S", "write what is shown as PNG"},
     {"Ctrl+Shift+S", "write the numbers as CSV"},
     {"Ctrl+Z, Delete", "on the canvas: take the last stroke away, clear"},
     {"Space", "pause and resume training"},
     {"Ctrl+.", "cancel what runs"},
     {"T", "dark and light"},
     {"?", "this list"},
     {"Ctrl+Q", "close"}}};

}  // namespace

void draw_top_bar(App& app) {
  const float scale = app.scale();
  ImGui::PushFont(fonts().large);
  ImGui::AlignTextToFramePadding();
  const float large = ImGui::GetTextLineHeight();
  ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(palette().accent), "Vitrine");
  ImGui::PopFont();
  ImGui::SameLine(0, 16 * scale);
  const float row = ImGui::GetCursorPosY() + (large - ImGui::GetFontSize()) / 2;
  ImGui::SetCursorPosY(row);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {4 * scale, 0});
  for (const Tab& tab : tabs) {
    const bool on = tab.view == app.view() || (shows_picture(tab.view) && shows_picture(app.view()));
    if (toggle_button(tab.title, on) && !on) app.show_tab(tab);
    hint(tab.hint);
    ImGui::SameLine();
    ImGui::SetCursorPosY(row);
  }
  ImGui::PopStyleVar();
  const float spacing = ImGui::GetStyle().ItemSpacing.x;
  const float small = ImGui::CalcTextSize("Light").x + 2 * ImGui::GetStyle().FramePadding.x;
  const float lists = ImGui::GetContentRegionAvail().x - small - ImGui::GetFrameHeight() - 4 * spacing;
  const float model = std::clamp(lists * 0.55f, 90 * scale, 300 * scale);
  const float device = std::clamp(lists - model - spacing, 60 * scale, 240 * scale);
  ImGui::SameLine(ImGui::GetWindowWidth() - ImGui::GetStyle().WindowPadding.x - model - device - small -
                  ImGui::GetFrameHeight() - 3 * spacing);
  ImGui::SetCursorPosY(row);
  draw_model_list(app, model);
  ImGui::SameLine();
  ImGui::SetCursorPosY(row);
  draw_device_list(app, device);
  ImGui::SameLine();
  ImGui::SetCursorPosY(row);
  if (ImGui::Button(app.dark() ? "Light" : "Dark", {small, 0})) app.set_dark(!app.dark());
  hint("Dark and light (T)");
  ImGui::SameLine();
  ImGui::SetCursorPosY(row);
  if (ImGui::Button("?", {ImGui::GetFrameHeight(), 0})) app.set_help(true);
  hint("Shortcuts");
}

void draw_status(App& app) {
  const Worker::Status status = app.worker().status();
  if (!app.errors().empty()) {
    const float button = 90 * app.scale();
    ImGui::AlignTextToFramePadding();
    ImGui::PushStyleColor(ImGuiCol_Text, palette().bad);
    const std::string& sentence = app.errors().front();
    const float width = ImGui::GetContentRegionAvail().x - button - 16 * app.scale();
    ImGui::TextUnformatted(fitted(sentence, width).c_str());
    ImGui::PopStyleColor();
    ImGui::SetItemTooltip("%s", sentence.c_str());
    ImGui::SameLine(ImGui::GetWindowWidth() - button - ImGui::GetStyle().WindowPadding.x);
    const size_t more = app.errors().size() - 1;
    if (ImGui::Button(more == 0 ? "Dismiss" : ("Next of " + std::to_string(more + 1)).c_str(), {button, 0}))
      app.dismiss_error();
    return;
  }
  if (!status.busy) {
    ImGui::AlignTextToFramePadding();
    faint(app.said().empty() ? app.looking().summary() : app.said());
    return;
  }
  ImGui::AlignTextToFramePadding();
  const std::string what = status.text.empty() ? status.what : status.what + ": " + status.text;
  const float bar = 220 * app.scale(), button = 80 * app.scale();
  ImGui::TextUnformatted(
      fitted(what, ImGui::GetContentRegionAvail().x - bar - button - 32 * app.scale()).c_str());
  ImGui::SameLine(ImGui::GetWindowWidth() - bar - button - 28 * app.scale());
  ImGui::ProgressBar(status.done, {bar, 0}, status.done > 0 ? nullptr : "");
  ImGui::SameLine();
  if (ImGui::Button("Cancel", {button, 0})) app.cancel();
}

void draw_help(App& app) {
  if (!app.help()) return;
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
    for (const auto& [keys, meaning] : shortcuts) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(palette().accent), "%s", keys);
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(meaning);
    }
    ImGui::EndTable();
  }
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  if (!open) app.set_help(false);
}

}  // namespace vitrine::desktop
