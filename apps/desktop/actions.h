// Performs actions of the table for those who see nothing of what these act on: panels, keys and scripts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/desktop/script/actions.h"

namespace vitrine::desktop {

class Actions {
 public:
  explicit Actions(Desk& desk) : desk_(desk) {}

  // Error where it makes no sense now; what a person would be told in the window is none.
  void perform(const Action& action);
  void perform(ActionId id, std::vector<std::string> words = {}) {
    perform(Action{.id = id, .words = std::move(words)});
  }

 private:
  Desk& desk_;
};

}  // namespace vitrine::desktop
