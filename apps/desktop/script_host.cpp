#include "apps/desktop/script_host.h"

#include <imgui.h>

#include <algorithm>
#include <cfloat>
#include <span>
#include <utility>

#include "apps/desktop/desk_values.h"
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
  if (name == "longest-frame") return std::to_string(log_.summary().longest);
  const std::span<const DeskValue> values = desk_values();
  const auto found = std::ranges::find(values, name, &DeskValue::name);
  return found == values.end() ? std::nullopt : std::optional(found->of(desk_));
}

}  // namespace vitrine::desktop
