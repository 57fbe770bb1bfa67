#include "runtime/util/unfinished.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>

#include "runtime/util/system.h"

namespace vitrine {
namespace {

// A handler may neither lock nor allocate: it takes the names out of a table, and whoever takes one owns it.
// Where the table is full, a name is left out of it.
using Name = std::filesystem::path::value_type;
using Slot = std::atomic<Name*>;
static_assert(Slot::is_always_lock_free);
std::array<Slot, 64> table{};

extern "C" void remove_and_end(int signal) {
  std::array<Name*, table.size()> taken;
  for (size_t i = 0; i < table.size(); ++i) taken[i] = table[i].exchange(nullptr);
  for (int round = 0; round < 2; ++round) {  // folders go in the second one: they are empty by then
    for (const Name* path : taken) {
      if (path) system::remove(path);
    }
  }
  system::end_by(
      signal);  // its default action was restored when this began, and ends the process when this returns
}

}  // namespace

Unfinished::Unfinished(const std::filesystem::path& path)
    : path_(new Name[path.native().size() + 1]), slot_(0) {
  std::ranges::copy(path.native(), path_);
  path_[path.native().size()] = 0;
  for (Name* none = nullptr; slot_ < table.size(); ++slot_, none = nullptr) {
    if (table[slot_].compare_exchange_strong(none, path_)) return;
  }
}

Unfinished::~Unfinished() {
  Name* own = path_;
  // A name that a handler has taken is in use until the process ends.
  if (slot_ >= table.size() || table[slot_].compare_exchange_strong(own, nullptr)) delete[] path_;
}

void remove_unfinished_on(int signal) { system::handle_once(signal, remove_and_end); }

void remove_unfinished_on_signals() {
  for (const int signal : system::ending_signals()) remove_unfinished_on(signal);
}

}  // namespace vitrine
