// The app as a script sees it: actions, the mouse and the keyboard, and the app's state by name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/desktop/actions.h"
#include "apps/desktop/desk.h"
#include "apps/desktop/script/frame_log.h"
#include "apps/desktop/script/script_runner.h"

namespace vitrine::desktop {

struct ScriptOptions {
  std::optional<Script> script;
  std::filesystem::path screenshot, frame_log;
  uint64_t frames = 0;  // to draw before the screenshot, at least
  bool any() const { return script || !screenshot.empty() || frames > 0; }
};

class ScriptHost : public ScriptTarget {
 public:
  ScriptHost(Desk& desk, Actions& actions, const ScriptOptions& options);

  // Once a turn of the loop. An Error ends the run with its status.
  void step();
  bool running() const { return runner_ && !runner_->finished(); }
  // Inside a frame, between ImGui's backend and ImGui: gives it the script's events.
  void feed_input();
  FrameTimer& timer() { return timer_; }
  FrameLog& log() { return log_; }

  void perform(const Action& action) override { actions_.perform(action); }
  bool idle() const override;
  uint64_t training_steps() const override;
  bool training() const override;
  void capture(const std::filesystem::path& path) override;
  bool capturing() const override;
  std::optional<ScriptArea> area(const std::string& name) const override;
  void move_mouse(ScriptPoint point) override { mouse_ = point; }
  void press_mouse(bool down) override;
  void press_key(const std::string& name, bool down) override;
  void type_text(const std::string& text) override;
  std::optional<std::string> value(const std::string& name) override;

 private:
  Desk& desk_;
  Actions& actions_;
  FrameTimer timer_;
  FrameLog log_;
  std::unique_ptr<ScriptRunner> runner_;
  std::optional<ScriptPoint> mouse_;  // told in every frame: the backend tells where the real one is
  std::vector<std::function<void()>> events_;
  bool capturing_ = false;
  std::string capture_error_;
};

}  // namespace vitrine::desktop
