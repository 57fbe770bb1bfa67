#include "runtime/util/unfinished.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace vitrine {
namespace {

// A handler may neither lock nor allocate: it takes the names out of a table, and whoever takes one owns it.
// Where the table is full, a name is left out of it.
using Slot = std::atomic<char*>;
static_assert(Slot::is_always_lock_free);
std::array<Slot, 64> table{};

extern "C" void remove_and_end(int signal) {
  std::array<char*, table.size()> taken;
  for (size_t i = 0; i < table.size(); ++i) taken[i] = table[i].exchange(nullptr);
  for (const char* path : taken) {
    if (path) unlink(path);
  }
  for (const char* path : taken) {  // folders, which are empty by now
    if (path) rmdir(path);
  }
  raise(signal);  // its default action was restored when this began, and ends the process when this returns
}

}  // namespace

Unfinished::Unfinished(const std::filesystem::path& path) : path_(strdup(path.c_str())), slot_(0) {
  for (char* none = nullptr; path_ && slot_ < table.size(); ++slot_, none = nullptr) {
    if (table[slot_].compare_exchange_strong(none, path_)) return;
  }
}

Unfinished::~Unfinished() {
  char* own = path_;
  // A name that a handler has taken is in use until the process ends.
  if (slot_ >= table.size() || table[slot_].compare_exchange_strong(own, nullptr)) std::free(path_);
}

void remove_unfinished_on(int signal) {
  struct sigaction action {};
  action.sa_handler = remove_and_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigfillset(&action.sa_mask);  // else another signal could end the process in the middle
  sigaction(signal, &action, nullptr);
}

void remove_unfinished_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) remove_unfinished_on(signal);
  }
}

}  // namespace vitrine
