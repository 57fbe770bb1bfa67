#include "apps/desktop/notices.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace vitrine::desktop {

void Notices::say_error(std::string sentence) {
  std::fprintf(stderr, "vitrine-desktop: %s\n", sentence.c_str());
  // The thumbnail and the model complain of the same file in the same words.
  const bool known = std::ranges::find(errors_, sentence) != errors_.end();
  if (!known && errors_.size() < most_errors) errors_.push_back(std::move(sentence));
  screen_.show_next_frames(3);
}

void Notices::dismiss_error() {
  if (!errors_.empty()) errors_.erase(errors_.begin());
}

void Notices::say(std::string sentence) {
  said_ = std::move(sentence);
  said_at_ = Clock::now();
  screen_.show_next_frames(3);
}

std::string Notices::said() const {
  return Clock::now() - said_at_ < std::chrono::seconds(8) ? said_ : std::string();
}

}  // namespace vitrine::desktop
