// What is told to the user: what went wrong, until it is dismissed, and what was done, for some seconds.
// State of the UI's thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "apps/desktop/screen.h"

namespace vitrine::desktop {

class Notices {
 public:
  static constexpr size_t most_errors = 50;

  explicit Notices(Screen& screen) : screen_(screen) {}

  // On stderr, too.
  void say_error(std::string sentence);
  const std::vector<std::string>& errors() const { return errors_; }
  void dismiss_error();

  void say(std::string sentence);
  std::string said() const;

 private:
  using Clock = std::chrono::steady_clock;
  Screen& screen_;
  std::vector<std::string> errors_;
  std::string said_;
  Clock::time_point said_at_;
};

}  // namespace vitrine::desktop
