// What the device can do, and what of its memory is in use.
#include <algorithm>
#include <string>

#include "apps/desktop/app.h"
#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"
#include "runtime/vk/device_facts.h"

namespace vitrine::desktop {
namespace {

void draw_use(const char* title, const MemoryUse& use) {
  const double peak = static_cast<double>(std::max<uint64_t>(use.peak_bytes, 1));
  share_bar(title, static_cast<double>(use.bytes) / peak,
            bytes_text(static_cast<double>(use.bytes)) + ", at most " +
                bytes_text(static_cast<double>(use.peak_bytes)),
            true);
}

void draw_memory(App& app) {
  const Device& device = *app.gpu().device;
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

void draw_device(App& app) {
  const ImVec2 start = ImGui::GetCursorScreenPos(), space = ImGui::GetContentRegionAvail();
  app.set_export_area({start.x, start.y, space.x, space.y});
  const Capabilities& capabilities = app.gpu().device->capabilities();
  ImGui::PushFont(fonts().large);
  ImGui::TextUnformatted(fitted(capabilities.name, space.x).c_str());
  ImGui::PopFont();
  ImGui::Spacing();
  const ImVec2 rest = ImGui::GetContentRegionAvail();
  const float right = std::min(360 * app.scale(), rest.x * 0.4f);
  ImGui::BeginChild("facts", {rest.x - right - 16 * app.scale(), rest.y});
  if (ImGui::BeginTable("facts", 2, ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp)) {
    ImGui::TableSetupColumn("name", ImGuiTableColumnFlags_WidthFixed);
    ImGui::TableSetupColumn("value", ImGuiTableColumnFlags_WidthStretch);
    for (const DeviceFact& fact : app.device_facts()) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      faint(fact.name);
      ImGui::TableNextColumn();
      ImGui::TextWrapped("%s", fact.value.c_str());
    }
    ImGui::EndTable();
  }
  ImGui::EndChild();
  ImGui::SameLine(0, 16 * app.scale());
  ImGui::BeginChild("memory", {right, rest.y});
  draw_memory(app);
  ImGui::EndChild();
}

}  // namespace vitrine::desktop
