// What the device can do, and what of its memory is in use.
#include <algorithm>
#include <string>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

void draw_use(const char* title, const MemoryUse& use) {
  const double peak = static_cast<double>(std::max<uint64_t>(use.peak_bytes, 1));
  share_bar(title, static_cast<double>(use.bytes) / peak,
            bytes_text(static_cast<double>(use.bytes)) + ", at most " +
                bytes_text(static_cast<double>(use.peak_bytes)),
            true);
}

void draw_memory(const Device& device) {
  heading("MEMORY THAT VITRINE USES");
  const MemoryStatistics memory = device.memory();
  draw_use("on the device", memory.device);
  draw_use("on the host, for transfers", memory.host);
  faint(std::to_string(device.allocations()) + " allocations, " + std::to_string(memory.buffers_made) +
        " made since the start");
  ImGui::Spacing();
  heading("THE DEVICE'S HEAPS");
  const std::vector<HeapBudget> budgets = device.heap_budgets();
  const auto& heaps = device.capabilities().heaps;
  for (size_t i = 0; i < budgets.size(); ++i) {
    const double budget = static_cast<double>(std::max<uint64_t>(budgets[i].budget_bytes, 1));
    share_bar("heap " + std::to_string(i) + (heaps[i].device_local ? ", the device's own" : ", the host's"),
              static_cast<double>(budgets[i].used_bytes) / budget,
              bytes_text(static_cast<double>(budgets[i].used_bytes)) + " of " + bytes_text(budget), false);
  }
}

}  // namespace

void draw_device(Screen& screen, const Device& device, std::span<const DeviceFact> facts) {
  screen.exported = area_left();
  ImGui::PushFont(fonts().large);
  ImGui::TextUnformatted(fitted(device.capabilities().name, screen.exported.width).c_str());
  ImGui::PopFont();
  ImGui::Spacing();
  const ImVec2 rest = ImGui::GetContentRegionAvail();
  const float right = std::min(360 * screen.scale, rest.x * 0.4f);
  ImGui::BeginChild("facts", {rest.x - right - 16 * screen.scale, rest.y});
  if (ImGui::BeginTable("facts", 2, ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp)) {
    ImGui::TableSetupColumn("name", ImGuiTableColumnFlags_WidthFixed);
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    for (const DeviceFact& fact : facts) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      faint(fact.name);
      ImGui::TableNextColumn();
      ImGui::TextWrapped("%s", fact.value.c_str());
    }
    ImGui::EndTable();
  }
  ImGui::EndChild();
  ImGui::SameLine(0, 16 * screen.scale);
  ImGui::BeginChild("memory", {right, rest.y});
  draw_memory(device);
  ImGui::EndChild();
}

}  // namespace vitrine::desktop
