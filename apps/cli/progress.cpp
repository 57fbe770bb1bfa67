#include "apps/cli/progress.h"

#include <cstdio>

#include "runtime/util/system.h"

namespace vitrine::cli {

StatusLine::StatusLine() : terminal_(system::stderr_is_terminal()) {}

StatusLine::~StatusLine() { clear(); }

bool StatusLine::due() const {
  return terminal_ && std::chrono::steady_clock::now() - last_ >= std::chrono::milliseconds(100);
}

void StatusLine::show(const std::string& text) {
  if (!terminal_) return;
  last_ = std::chrono::steady_clock::now();
  shown_ = true;
  std::fprintf(stderr, "\r%s\033[K", text.c_str());
  std::fflush(stderr);
}

void StatusLine::clear() {
  if (!std::exchange(shown_, false)) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  last_ = {};
}

void Progress::show(uint64_t done) {
  if (total_ <= 1 || (done < total_ && !line_.due())) return;
  line_.show(std::to_string(done) + " of " + std::to_string(total_) + " " + what_);
}

}  // namespace vitrine::cli
