#include "apps/cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace vitrine::cli {

Progress::Progress(std::string what, uint64_t total)
    : what_(std::move(what)), total_(total), terminal_(isatty(STDERR_FILENO) != 0 && total > 1) {}

Progress::~Progress() { clear(); }

void Progress::show(uint64_t done) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (done < total_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  shown_ = true;
  std::fprintf(stderr, "\r%llu of %llu %s", static_cast<unsigned long long>(done),
               static_cast<unsigned long long>(total_), what_.c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (!std::exchange(shown_, false)) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  last_ = {};
}

}  // namespace vitrine::cli
