#include "apps/desktop/script/script_runner.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine::desktop {
namespace {

// Generous: the software driver under a sanitizer runs a large model for minutes.
constexpr double wait_seconds = 300;
constexpr double train_seconds = 900;
constexpr double shot_seconds = 60;
// A part of the window that is named must have been drawn by then.
constexpr double area_seconds = 5;
// Of the mouse's way between two points of a drag.
constexpr int drag_frames = 4;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

bool holds(const std::string& found, const std::string& relation, const std::string& wanted) {
  if (relation == "=") return found == wanted;
  if (relation == "!=") return found != wanted;
  if (relation == "contains") return found.find(wanted) != std::string::npos;
  const auto left = number_in(found), right = number_in(wanted);
  if (!left || !right) return false;
  if (relation == "<") return *left < *right;
  if (relation == "<=") return *left <= *right;
  if (relation == ">") return *left > *right;
  return *left >= *right;
}

std::string rounded(double seconds) {
  const std::string text = std::to_string(seconds);
  return text.substr(0, seconds < 10 ? 3 : text.find('.'));
}

}  // namespace

ScriptRunner::ScriptRunner(Script script, ScriptTarget& target, Clock clock)
    : script_(std::move(script)), target_(target), clock_(clock ? std::move(clock) : steady_seconds) {}

void ScriptRunner::fail(const std::string& what) const {
  throw Error(ErrorCode::failed,
              script_.name + ", line " + std::to_string(script_.actions.at(next_ - 1).line) + ": " + what);
}

void ScriptRunner::wait_for(std::string what, double limit, Check done) {
  pending_ = Pending{std::move(done), std::move(what), clock_() + limit, limit};
}

void ScriptRunner::step() {
  if (!inputs_.empty()) {
    const auto input = std::move(inputs_.front());
    inputs_.pop_front();
    input();
    return;
  }
  if (pending_) {
    // A copy: what is done next may wait for something else.
    const Check done = pending_->done;
    if (!done()) {
      if (clock_() > pending_->deadline)
        fail("waited " + rounded(pending_->limit) + " seconds in vain " + pending_->what);
      return;
    }
    pending_.reset();
    if (!inputs_.empty()) return;
  }
  while (next_ < script_.actions.size()) {
    const Action& action = script_.actions[next_++];
    try {
      if (!start(action)) return;
    } catch (const Error& error) {
      // Those of fail() name the line already.
      const std::string where = script_.name + ", line " + std::to_string(action.line) + ": ";
      const std::string_view what = error.what();
      throw Error(error.code(), what.starts_with(where) ? std::string(what) : where + std::string(what));
    }
  }
}

bool ScriptRunner::start(const Action& action) {
  switch (action.id) {
    case ActionId::wait: {
      // What an action begins may only begin with the frame after it, and what a finished job leaves to do
      // with the one after that: two frames in a row have to find nothing.
      const auto quiet = std::make_shared<int>(0);
      wait_for("until nothing runs in the background", action.words.empty() ? wait_seconds : action.number(0),
               [this, quiet] {
                 *quiet = target_.idle() ? *quiet + 1 : 0;
                 return *quiet >= 2;
               });
      return false;
    }
    case ActionId::frames: {
      const auto left = std::make_shared<uint64_t>(action.whole(0));
      if (*left == 0) return true;
      wait_for("for enough frames", 1e9, [left] { return --*left == 0; });
      return false;
    }
    case ActionId::train_steps: {
      const uint64_t begin = target_.training_steps(), wanted = begin + action.whole(0);
      wait_for("for step " + std::to_string(wanted) + " of the training", train_seconds,
               [this, begin, wanted] {
                 if (target_.training_steps() >= wanted) return true;
                 // A training that was asked for in this frame begins in the background.
                 if (!target_.training() && target_.idle())
                   fail("the training ended after " + std::to_string(target_.training_steps() - begin) +
                        " steps, expected " + std::to_string(wanted - begin));
                 return false;
               });
      return false;
    }
    case ActionId::shot:
      target_.capture(action.words[0]);
      wait_for("for the picture " + shown(action.words[0]), shot_seconds,
               [this] { return !target_.capturing(); });
      return false;
    case ActionId::mouse:
    case ActionId::click:
    case ActionId::drag:
      start_mouse(action);
      return false;
    case ActionId::key:
      start_key(action);
      return false;
    case ActionId::type:
      target_.type_text(action.words[0]);
      return false;
    case ActionId::expect:
      check_value(action);
      return true;
    case ActionId::until: {
      std::string sought = "until";
      for (const std::string& word : action.words) sought += " " + word;
      wait_for(std::move(sought), wait_seconds, [this, &action] {
        std::string found;
        return is_so(action, found);
      });
      return false;
    }
    case ActionId::dump: {
      const std::string bytes = value(action.words[0]);
      write_file_atomically(action.words[1], std::as_bytes(std::span(bytes)));
      return true;
    }
    case ActionId::close:
      next_ = script_.actions.size();
      target_.perform(action);
      return false;
    default:
      target_.perform(action);
      return false;
  }
}

void ScriptRunner::start_mouse(const Action& action) {
  if (number_in(action.words[0])) return send_mouse(action, {0, 0, 1, 1}, 0);
  const std::string& name = action.words[0];
  const auto try_area = [this, &action, &name] {
    const auto area = target_.area(name);
    if (area) send_mouse(action, *area, 1);
    return area.has_value();
  };
  // The action before this one may be what makes it appear, some frames from now.
  if (!try_area())
    wait_for("for a part of the window with the name " + in_quotes(name), area_seconds, try_area);
}

void ScriptRunner::send_mouse(const Action& action, const ScriptArea& area, size_t first) {
  std::vector<ScriptPoint> points;
  for (size_t i = first; i + 1 < action.words.size(); i += 2)
    points.push_back({area.x + action.number(i) * area.width, area.y + action.number(i + 1) * area.height});
  if (points.empty()) points.push_back({area.x + area.width / 2, area.y + area.height / 2});

  // Each in a frame of its own: an interface that is asked once a frame sees a click that lasts no frame not
  // at all.
  const auto move = [this](ScriptPoint point) {
    inputs_.push_back([this, point] { target_.move_mouse(point); });
  };
  const auto press = [this](bool down) { inputs_.push_back([this, down] { target_.press_mouse(down); }); };
  move(points[0]);
  if (action.id != ActionId::mouse) press(true);
  for (size_t i = 1; i < points.size(); ++i) {
    const ScriptPoint from = points[i - 1], to = points[i];
    for (int k = 1; k <= drag_frames; ++k) {
      const double share = static_cast<double>(k) / drag_frames;
      move({from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share});
    }
  }
  if (action.id != ActionId::mouse) press(false);
  inputs_.push_back([] {});  // and a frame that shows what came of it
}

void ScriptRunner::start_key(const Action& action) {
  const KeyChord chord = parse_key(action.words[0]);
  const auto press = [this, chord](bool down) {
    if (down) {
      for (const std::string& modifier : chord.modifiers) target_.press_key(modifier, true);
    }
    target_.press_key(chord.key, down);
    if (!down) {
      for (const std::string& modifier : chord.modifiers) target_.press_key(modifier, false);
    }
  };
  inputs_.push_back([press] { press(true); });
  inputs_.push_back([press] { press(false); });
  inputs_.push_back([] {});
}

std::string ScriptRunner::value(const std::string& name) {
  auto found = target_.value(name);
  if (!found) fail("found " + in_quotes(name) + ", expected a part of the app's state");
  return *found;
}

bool ScriptRunner::is_so(const Action& action, std::string& found) {
  found = value(action.words[0]);
  return holds(found, action.words.size() == 3 ? action.words[1] : "=", action.words.back());
}

void ScriptRunner::check_value(const Action& action) {
  std::string found;
  if (is_so(action, found)) return;
  const std::string relation = action.words.size() == 3 ? action.words[1] : "=";
  const std::string& wanted = action.words.back();
  fail(action.words[0] + " is " + in_quotes(found, 400) + ", expected " +
       (relation == "=" ? "" : relation + " ") + in_quotes(wanted, 400));
}

}  // namespace vitrine::desktop
