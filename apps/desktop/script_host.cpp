#include "apps/desktop/script_host.h"

#include <imgui.h>

#include <algorithm>
#include <cfloat>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/desktop/keyboard.h"
#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

Script script_of(const ScriptOptions& options) {
  Script script = options.script.value_or(Script{});
  const auto add = [&](ActionId id, std::vector<std::string> words) {
    script.actions.push_back({.id = id, .words = std::move(words), .line = 0});
  };
  const bool closes = !script.actions.empty() && script.actions.back().id == ActionId::close;
  if (closes) script.actions.pop_back();
  if (!options.screenshot.empty() && !options.script) add(ActionId::wait, {});
  // What was asked for in the last frame has to reach the screen.
  if (options.frames > 0 || !options.screenshot.empty())
    add(ActionId::frames, {std::to_string(std::max<uint64_t>(options.frames, 3))});
  if (!options.screenshot.empty()) add(ActionId::shot, {options.screenshot.string()});
  add(ActionId::close, {});
  return script;
}

}  // namespace

ScriptHost::ScriptHost(Desk& desk, Actions& actions, const ScriptOptions& options)
    : desk_(desk), actions_(actions), log_(options.frame_log) {
  if (!options.any()) return;
  runner_ = std::make_unique<ScriptRunner>(script_of(options), *this);
  // The real one is nobody's while a script runs.
  mouse_ = ScriptPoint{-FLT_MAX, -FLT_MAX};
}

void ScriptHost::step() {
  if (runner_) runner_->step();
}

void ScriptHost::feed_input() {
  ImGuiIO& io = ImGui::GetIO();
  if (mouse_) {
    io.AddFocusEvent(true);
    io.AddMousePosEvent(static_cast<float>(mouse_->x), static_cast<float>(mouse_->y));
  }
  for (const auto& event : events_) event();
  events_.clear();
}

void ScriptHost::press_mouse(bool down) {
  events_.push_back([down] { ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down); });
}

void ScriptHost::press_key(const std::string& name, bool down) {
  events_.push_back([name, down] {
    ImGui::GetIO().AddKeyEvent(imgui_key(name), down);
    // What typing the key gives, where it is listened for.
    const auto named = std::ranges::find(key_names(), name, &KeyName::name);
    if (down && named != key_names().end() && named->typed != KeyName::Typed::no)
      ImGui::GetIO().AddInputCharacter(static_cast<unsigned>(name[0]));
  });
}

void ScriptHost::type_text(const std::string& text) {
  events_.push_back([text] { ImGui::GetIO().AddInputCharactersUTF8(text.c_str()); });
}

std::optional<ScriptArea> ScriptHost::area(const std::string& name) const {
  const auto found = desk_.screen.areas.find(name);
  if (found == desk_.screen.areas.end()) return std::nullopt;
  const Area& area = found->second;
  return ScriptArea{area.left, area.top, area.width, area.height};
}

bool ScriptHost::idle() const { return !desk_.busy() && !desk_.training().busy(); }
uint64_t ScriptHost::training_steps() const { return desk_.training().state()->step; }
bool ScriptHost::training() const { return desk_.training().state()->busy(); }

void ScriptHost::capture(const std::filesystem::path& path) {
  capturing_ = true;
  desk_.exports.write_window(path, [this](const std::string& error) {
    capture_error_ = error;
    capturing_ = false;
  });
}

bool ScriptHost::capturing() const {
  if (!capture_error_.empty()) throw Error(ErrorCode::failed, capture_error_);
  return capturing_;
}

std::optional<std::string> ScriptHost::value(const std::string& name) {
  const Looking& looking = desk_.looking();
  const MapSelection& selection = looking.selection();
  const Looking::Seen* seen = looking.seen();
  const Looking::Maps* maps = looking.maps(desk_.screen.view());
  if (name == "view") return std::string(name_of(desk_.screen.view()).name);
  if (name == "theme") return desk_.screen.dark ? "dark" : "light";
  if (name == "model") return looking.model_name();
  if (name == "device") return desk_.on_device->device.capabilities().name;
  if (name == "picture") return seen ? seen->path.string() : "";
  if (name == "pictures") return std::to_string(desk_.library.size());
  if (name == "layer") return std::to_string(selection.layer);
  if (name == "layers") return std::to_string(looking.layers());
  if (name == "heads") return std::to_string(looking.heads());
  if (name == "looks") return std::to_string(looking.looks());
  if (name == "head") return selection.head ? std::to_string(*selection.head) : "mean";
  if (name == "token") return selection.token ? std::to_string(*selection.token) : "class";
  if (name == "dispatches") return std::to_string(maps ? maps->dispatches : 0);
  if (name == "error") return desk_.notices.errors().empty() ? "" : desk_.notices.errors().back();
  if (name == "errors") return std::to_string(desk_.notices.errors().size());
  if (name == "said") return desk_.notices.said();
  if (name == "orientation") return seen ? std::to_string(seen->result.orientation) : "";
  if (name == "answer") return seen && !seen->result.top.empty() ? seen->result.top[0].label : "";
  if (name == "digit") {
    const auto best = desk_.drawing().best();
    const auto labels = desk_.drawing().labels();
    return best && *best < labels.size() ? labels[*best] : "";
  }
  if (name == "steps") return std::to_string(training_steps());
  if (name == "training") return std::string(name_of(desk_.training().state()->stage));
  if (name == "saved") return desk_.training().state()->saved.string();
  if (name == "loss") return std::to_string(desk_.training().state()->last_loss());
  if (name == "accuracy") return std::to_string(desk_.training().state()->accuracy());
  if (name == "longest-frame") return std::to_string(log_.summary().longest);
  // Tokens in front of the patches, rows and columns of these.
  if (name == "grid") {
    const ViTConfig* c = looking.config();
    return c ? std::to_string(c->prefix_tokens()) + " " + std::to_string(c->grid_height()) + " " +
                   std::to_string(c->grid_width())
             : "";
  }
  // As they are on the device: RGBA, one map below the other.
  if (name == "map-pixels") {
    if (!maps) return "";
    const std::vector<uint8_t> pixels = desk_.on_device->textures.read(*maps->texture);
    return std::string(pixels.begin(), pixels.end());
  }
  // As vitrine classify --json has them.
  if (name == "top") {
    nlohmann::ordered_json top = nlohmann::ordered_json::array();
    if (seen) {
      for (const TopAnswer& answer : seen->result.top)
        top.push_back(
            {{"index", answer.index}, {"label", answer.label}, {"probability", answer.probability}});
    }
    return top.dump() + "\n";
  }
  return std::nullopt;
}

}  // namespace vitrine::desktop
