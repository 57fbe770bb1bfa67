#include "apps/desktop/script_host.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/util/error.h"

namespace vitrine::desktop {
namespace {

constexpr std::array<std::pair<std::string_view, ImGuiKey>, 24> named_keys{{{"left", ImGuiKey_LeftArrow},
                                                                            {"right", ImGuiKey_RightArrow},
                                                                            {"up", ImGuiKey_UpArrow},
                                                                            {"down", ImGuiKey_DownArrow},
                                                                            {"home", ImGuiKey_Home},
                                                                            {"end", ImGuiKey_End},
                                                                            {"pageup", ImGuiKey_PageUp},
                                                                            {"pagedown", ImGuiKey_PageDown},
                                                                            {"enter", ImGuiKey_Enter},
                                                                            {"escape", ImGuiKey_Escape},
                                                                            {"space", ImGuiKey_Space},
                                                                            {"tab", ImGuiKey_Tab},
                                                                            {"backspace", ImGuiKey_Backspace},
                                                                            {"delete", ImGuiKey_Delete},
                                                                            {"-", ImGuiKey_Minus},
                                                                            {"+", ImGuiKey_Equal},
                                                                            {"[", ImGuiKey_LeftBracket},
                                                                            {"]", ImGuiKey_RightBracket},
                                                                            {",", ImGuiKey_Comma},
                                                                            {".", ImGuiKey_Period},
                                                                            {"?", ImGuiKey_Slash},
                                                                            {"ctrl", ImGuiMod_Ctrl},
                                                                            {"shift", ImGuiMod_Shift},
                                                                            {"alt", ImGuiMod_Alt}}};

ImGuiKey key_named(std::string_view name) {
  for (const auto& [known, key] : named_keys) {
    if (known == name) return key;
  }
  if (name.size() == 1 && name[0] >= 'a' && name[0] <= 'z')
    return static_cast<ImGuiKey>(ImGuiKey_A + (name[0] - 'a'));
  if (name.size() == 1 && name[0] >= '0' && name[0] <= '9')
    return static_cast<ImGuiKey>(ImGuiKey_0 + (name[0] - '0'));
  if (name.size() > 1 && name[0] == 'f')
    return static_cast<ImGuiKey>(ImGuiKey_F1 + std::stoi(std::string(name.substr(1))) - 1);
  throw Error(ErrorCode::usage, "there is no key '" + std::string(name) + "'");
}

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
    ImGui::GetIO().AddKeyEvent(key_named(name), down);
    // What typing the key gives, where a panel listens for the sign rather than for the key.
    if (down && (name == "?" || name == "+"))
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

void ScriptHost::perform(const Action& action) {
  MapSelection selection = desk_.looking().selection();
  const ViTConfig* c = desk_.looking().config();
  switch (action.id) {
    case ActionId::open:
    case ActionId::open_folder:
      return actions_.open({action.words[0]});
    case ActionId::drop:
      return actions_.open({action.words.begin(), action.words.end()});
    case ActionId::next:
      return actions_.next();
    case ActionId::previous:
      return actions_.previous();
    case ActionId::model:
      return actions_.choose_model(action.words[0]);
    case ActionId::device:
      return actions_.choose_device(action.whole(0));
    case ActionId::view:
      return actions_.show(*view_named(action.words[0]));
    case ActionId::layer:
      selection.layer = action.whole(0);
      break;
    case ActionId::head:
      selection.head = action.words[0] == "mean" ? std::nullopt : std::optional(action.whole(0));
      break;
    case ActionId::token:
      selection.token.reset();
      if (action.words.size() == 2) {
        if (!c) throw Error(ErrorCode::failed, "there is no model whose token could be chosen");
        selection.token = c->prefix_tokens() + action.whole(0) * c->grid_width() + action.whole(1);
      }
      break;
    case ActionId::opacity:
      selection.opacity = static_cast<float>(action.number(0));
      break;
    case ActionId::colormap:
      selection.map = color_map_named(action.words[0]);
      break;
    case ActionId::patch_grid:
      selection.patch_grid = action.on();
      break;
    case ActionId::exif:
      return actions_.turn_by_exif(action.on());
    case ActionId::stroke: {
      std::vector<CanvasPoint> points;
      for (size_t i = 0; i + 1 < action.words.size(); i += 2)
        points.push_back({action.number(i), action.number(i + 1)});
      return desk_.drawing().canvas.add_stroke(points);
    }
    case ActionId::clear:
      return desk_.drawing().canvas.clear();
    case ActionId::train:
      return actions_.start_training(action.words[0], action.words.size() > 1 ? action.words[1] : "");
    case ActionId::pause:
      return desk_.training().pause();
    case ActionId::resume:
      return desk_.training().resume();
    case ActionId::save:
      return desk_.training().save(action.words[0]);
    case ActionId::cancel:
      return actions_.cancel();
    case ActionId::export_png:
      return actions_.export_picture(action.words[0]);
    case ActionId::export_csv:
      return actions_.export_numbers(action.words[0]);
    case ActionId::theme:
      return actions_.set_dark(action.words[0] == "dark");
    case ActionId::help:
      return actions_.set_help(action.on());
    case ActionId::resize:
      return desk_.window.resize(static_cast<int>(action.whole(0)), static_cast<int>(action.whole(1)));
    case ActionId::minimise:
      return desk_.window.minimise();
    case ActionId::restore:
      return desk_.window.restore();
    case ActionId::close:
      return actions_.close();
    default:
      throw Error(ErrorCode::usage, "this action is not the app's");
  }
  desk_.looking().select(selection);
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
