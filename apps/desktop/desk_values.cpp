#include "apps/desktop/desk_values.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "apps/desktop/desk.h"
#include "apps/desktop/engine/export.h"

namespace vitrine::desktop {
namespace {

const MapSelection& selection(const Desk& desk) { return desk.looking().selection(); }
const Looking::Maps* maps(const Desk& desk) { return desk.looking().maps(desk.screen.view()); }

std::string answer(const Desk& desk) {
  const Looking::Seen* seen = desk.looking().seen();
  return seen && !seen->result.top.empty() ? seen->result.top[0].label : "";
}

// As vitrine classify --json has them.
std::string top(const Desk& desk) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (const Looking::Seen* seen = desk.looking().seen()) {
    for (const TopAnswer& found : seen->result.top)
      list.push_back({{"index", found.index}, {"label", found.label}, {"probability", found.probability}});
  }
  return list.dump() + "\n";
}

std::string scores(const Desk& desk) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TopAnswer& found : desk.words().scores())
    list.push_back({{"index", found.index}, {"label", found.label}, {"probability", found.probability}});
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// The list as it is sorted, a name a line.
std::string order(const Desk& desk) {
  std::string names;
  for (size_t i = 0; i < desk.library.size(); ++i) names += desk.library.name(i) + "\n";
  return names;
}

// Tokens in front of the patches, rows and columns of these.
std::string grid(const Desk& desk) {
  const ViTConfig* c = desk.looking().config();
  return c ? std::to_string(c->prefix_tokens()) + " " + std::to_string(c->grid_height()) + " " +
                 std::to_string(c->grid_width())
           : "";
}

// As they are on the device: RGBA, one map below the other.
std::string map_pixels(const Desk& desk) {
  const Looking::Maps* shown = maps(desk);
  if (!shown) return "";
  const std::vector<uint8_t> pixels = desk.on_device->textures.read(*shown->texture);
  return {pixels.begin(), pixels.end()};
}

// The one that was opened last.
RunState run(const Desk& desk) {
  const RunWatch::States states = desk.runs.states();
  return states.empty() ? RunState{} : *states.back();
}

std::string digit(const Desk& desk) {
  const std::optional<size_t> best = desk.drawing().best();
  const std::vector<std::string> labels = desk.drawing().labels();
  return best && *best < labels.size() ? labels[*best] : "";
}

constexpr DeskValue values[] = {
    {"picture",
     [](const Desk& desk) { return desk.looking().seen() ? desk.looking().seen()->path.string() : ""; }},
    {"pictures", [](const Desk& desk) { return std::to_string(desk.library.size()); }},
    {"answer", answer},
    {"top", top},
    {"label",
     [](const Desk& desk) { return desk.words().scores().empty() ? "" : desk.words().scores()[0].label; }},
    {"scores", scores},
    {"order", order},
    {"first", [](const Desk& desk) { return desk.library.empty() ? "" : desk.library.name(0); }},
    {"orientation",
     [](const Desk& desk) {
       return desk.looking().seen() ? std::to_string(desk.looking().seen()->result.orientation) : "";
     }},
    {"model", [](const Desk& desk) { return desk.looking().model_name(); }},
    {"device", [](const Desk& desk) { return desk.on_device->device.capabilities().name; }},
    {"view", [](const Desk& desk) { return std::string(name_of(desk.screen.view()).name); }},
    {"theme", [](const Desk& desk) { return std::string(desk.screen.dark ? "dark" : "light"); }},
    {"layer", [](const Desk& desk) { return std::to_string(selection(desk).layer); }},
    {"layers", [](const Desk& desk) { return std::to_string(desk.looking().layers()); }},
    {"head",
     [](const Desk& desk) { return selection(desk).head ? std::to_string(*selection(desk).head) : "mean"; }},
    {"heads", [](const Desk& desk) { return std::to_string(desk.looking().heads()); }},
    {"token",
     [](const Desk& desk) {
       return selection(desk).token ? std::to_string(*selection(desk).token) : "class";
     }},
    {"grid", grid},
    {"map-pixels", map_pixels},
    {"dispatches", [](const Desk& desk) { return std::to_string(maps(desk) ? maps(desk)->dispatches : 0); }},
    {"looks", [](const Desk& desk) { return std::to_string(desk.looking().looks()); }},
    {"digit", digit},
    {"training", [](const Desk& desk) { return std::string(name_of(desk.training().state()->stage)); }},
    {"steps", [](const Desk& desk) { return std::to_string(desk.training().state()->step); }},
    {"remark", [](const Desk& desk) { return desk.training().state()->remark; }},
    {"loss", [](const Desk& desk) { return std::to_string(desk.training().state()->last_loss()); }},
    {"accuracy", [](const Desk& desk) { return std::to_string(desk.training().state()->accuracy()); }},
    {"saved", [](const Desk& desk) { return desk.training().state()->saved.string(); }},
    {"runs", [](const Desk& desk) { return std::to_string(desk.runs.states().size()); }},
    {"run", [](const Desk& desk) { return run(desk).error.empty() ? run(desk).name : run(desk).error; }},
    {"run-grows", [](const Desk& desk) { return std::string(run(desk).grows ? "yes" : "no"); }},
    {"run-step", [](const Desk& desk) { return std::to_string(run(desk).curves.step); }},
    {"run-loss", [](const Desk& desk) { return csv_number(run(desk).curves.newest_loss); }},
    {"run-best",
     [](const Desk& desk) {
       const RunState newest = run(desk);
       const ValidationPoint* best = newest.curves.best();
       return best ? csv_number(best->accuracy) : std::string();
     }},
    {"run-skipped", [](const Desk& desk) { return std::to_string(run(desk).curves.skipped); }},
    {"error",
     [](const Desk& desk) { return desk.notices.errors().empty() ? "" : desk.notices.errors().back(); }},
    {"errors", [](const Desk& desk) { return std::to_string(desk.notices.errors().size()); }},
    {"said", [](const Desk& desk) { return desk.notices.said(); }},
};

}  // namespace

std::span<const DeskValue> desk_values() { return values; }

}  // namespace vitrine::desktop
