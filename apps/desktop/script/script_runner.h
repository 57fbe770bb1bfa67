// Performs a script, a piece in every frame, on the UI's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/desktop/script/script.h"

namespace vitrine::desktop {

// Of the window, in pixels.
struct ScriptPoint {
  double x = 0, y = 0;
  bool operator==(const ScriptPoint&) const = default;
};
struct ScriptArea {
  double x = 0, y = 0, width = 0, height = 0;
};

// What a script acts on: the app.
class ScriptTarget {
 public:
  virtual ~ScriptTarget() = default;

  // Everything above "In scripts only", and drop. An Error ends the script; what a person would be told in
  // the window is none.
  virtual void perform(const Action& action) = 0;
  // Nothing runs in the background or waits to.
  virtual bool idle() const = 0;
  // Steps that the training has made, and whether it will make more.
  virtual uint64_t training_steps() const = 0;
  virtual bool training() const = 0;

  // Writes the pixels of the next frame; capturing() until the file is there.
  virtual void capture(const std::filesystem::path& path) = 0;
  virtual bool capturing() const = 0;

  // Where something is that the last frame has drawn.
  virtual std::optional<ScriptArea> area(const std::string& name) const = 0;
  // The mouse and the keyboard, as the window's next frame sees them. Keys are those of parse_key().
  virtual void move_mouse(ScriptPoint point) = 0;
  virtual void press_mouse(bool down) = 0;
  virtual void press_key(const std::string& name, bool down) = 0;
  virtual void type_text(const std::string& text) = 0;

  // What expect and dump know under this name.
  virtual std::optional<std::string> value(const std::string& name) = 0;
};

class ScriptRunner {
 public:
  using Clock = std::function<double()>;  // seconds
  ScriptRunner(Script script, ScriptTarget& target, Clock clock = {});
  ScriptRunner(const ScriptRunner&) = delete;
  ScriptRunner& operator=(const ScriptRunner&) = delete;

  // Once a frame, before it is composed; while the window is minimised and draws none, once a turn of the
  // loop. Error where the script can't go on: failed where the app is not as expected.
  void step();
  // After the last action, or after close.
  bool finished() const { return next_ == script_.actions.size() && !waits() && inputs_.empty(); }

 private:
  using Check = std::function<bool()>;
  struct Pending {
    Check done;
    std::string what;  // for the sentence about a wait that took too long
    double deadline = 0;
    double limit = 0;
  };

  bool waits() const { return pending_.has_value(); }
  void wait_for(std::string what, double limit, Check done);
  // True when the next action may follow in the same frame.
  bool start(const Action& action);
  void start_mouse(const Action& action);
  void send_mouse(const Action& action, const ScriptArea& area, size_t first);
  void start_key(const Action& action);
  bool is_so(const Action& action, std::string& found);
  void check_value(const Action& action);
  std::string value(const std::string& name);
  [[noreturn]] void fail(const std::string& what) const;

  Script script_;
  ScriptTarget& target_;
  Clock clock_;
  size_t next_ = 0;
  std::optional<Pending> pending_;
  std::deque<std::function<void()>> inputs_;  // one a frame
};

}  // namespace vitrine::desktop
