// The walk through the model as a list that unfolds.
#include <array>
#include <cstdio>
#include <string>

#include "apps/desktop/panels/panels.h"
#include "apps/desktop/panels/widgets.h"
#include "apps/desktop/theme.h"

namespace vitrine::desktop {
namespace {

std::string shape_of(const std::vector<uint64_t>& shape) {
  std::string text;
  for (const uint64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

// "1.2 M", "35 k".
std::string count_of(double value, const char* unit) {
  constexpr std::array<const char*, 5> steps{"", " k", " M", " G", " T"};
  size_t step = 0;
  while (value >= 1000 && step + 1 < steps.size()) {
    value /= 1000;
    ++step;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), value >= 100 || step == 0 ? "%.0f%s%s" : "%.1f%s%s", value,
                steps[step], unit);
  return text.data();
}

void draw_cells(const StructureNode& node) {
  ImGui::TableNextColumn();
  ImGui::PushFont(fonts().mono);
  ImGui::TextUnformatted(shape_of(node.shape).c_str());
  ImGui::PopFont();
  ImGui::TableNextColumn();
  if (node.parameters > 0) ImGui::TextUnformatted(count_of(static_cast<double>(node.parameters), "").c_str());
  ImGui::TableNextColumn();
  if (node.flops > 0) ImGui::TextUnformatted(count_of(node.flops, "").c_str());
  ImGui::TableNextColumn();
  faint_wrapped(node.what);
}

// `open_path` unfolds groups on the first frame, so that a newcomer sees one block from within.
void draw_node(const StructureNode& node, const std::string& open_path) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushID(&node);
  const bool leaf = node.children.empty();
  ImGuiTreeNodeFlags flags = ImGuiTreeNodeFlags_SpanAllColumns;
  if (leaf)
    flags |= ImGuiTreeNodeFlags_Leaf | ImGuiTreeNodeFlags_NoTreePushOnOpen | ImGuiTreeNodeFlags_Bullet;
  if (node.path == open_path || open_path.starts_with(node.path + "."))
    flags |= ImGuiTreeNodeFlags_DefaultOpen;
  const bool open = ImGui::TreeNodeEx("node", flags, "%s", node.name.c_str());
  if (!node.path.empty() || !node.operator_name.empty()) {
    ImGui::SetItemTooltip("%s%s%s", node.path.c_str(), node.operator_name.empty() ? "" : "\noperator ",
                          node.operator_name.c_str());
  }
  draw_cells(node);
  if (open && !leaf) {
    for (const StructureNode& child : node.children) draw_node(child, open_path);
    ImGui::TreePop();
  }
  ImGui::PopID();
}

}  // namespace

void draw_structure(Screen& screen, Actions& actions, const Looking& looking, bool busy) {
  const Area& space = screen.exported = area_left();
  if (!looking.has_model())
    return faint(busy ? "Opening the model..." : "No model is open. Choose one above.");
  ImGui::PushFont(fonts().large);
  ImGui::TextUnformatted(fitted(looking.model_title(), space.width - 180 * screen.scale).c_str());
  ImGui::PopFont();
  ImGui::SameLine(space.width - 120 * screen.scale);
  if (ImGui::Button("Export as CSV", {130 * screen.scale, 0})) actions.perform(ActionId::export_csv);
  double flops = 0;
  uint64_t parameters = 0;
  for (const StructureNode& node : looking.structure()) {
    flops += node.flops;
    parameters += node.parameters;
  }
  faint(count_of(static_cast<double>(parameters), " parameters") + ", " + count_of(flops, "FLOP an image") +
        ", " + looking.summary());
  ImGui::Spacing();
  if (!ImGui::BeginTable("structure", 5,
                         ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_Resizable |
                             ImGuiTableFlags_SizingStretchProp))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("part", 0, 2.6f);
  ImGui::TableSetupColumn("shape that comes out", 0, 2);
  ImGui::TableSetupColumn("parameters", 0, 1.1f);
  ImGui::TableSetupColumn("FLOP", 0, 0.9f);
  ImGui::TableSetupColumn("what happens", 0, 4.4f);
  ImGui::TableHeadersRow();
  for (const StructureNode& node : looking.structure()) draw_node(node, "blocks.0.attn");
  ImGui::EndTable();
}

}  // namespace vitrine::desktop
