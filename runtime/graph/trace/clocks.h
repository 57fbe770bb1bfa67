// A queue's timestamps on the host's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/vk/device.h"

namespace vitrine {

// Seconds by the host's clock that nobody sets, std::chrono::steady_clock.
double host_seconds();

// Both clocks read at once, with the most that may lie between the two readings, in seconds.
struct ClockPair {
  double host = 0;
  uint64_t ticks = 0;
  double deviation = 0;
};
// Nothing where the device doesn't calibrate timestamps, or knows only of other clocks than host_seconds()'s.
std::optional<ClockPair> read_clocks(const Device& device);

// What happened at the device, and when the host had submitted it and saw it done.
struct Bracket {
  double submitted = 0, seen = 0;  // by the host's clock
  uint64_t begin = 0, end = 0;     // by the device's
};

class DeviceClock {
 public:
  DeviceClock(uint32_t bits, double period_ns) : bits_(bits), period_ns_(period_ns) {}

  // By two pairs, one from before all timestamps and one from behind them.
  void match(const ClockPair& before, const ClockPair& after);
  // Without any: nothing begins before it is submitted, and nothing ends after its end is seen. Of the
  // offsets that are possible then, the one in the middle; with brackets in order of their beginning.
  void match(std::span<const Bracket> brackets);

  double at(uint64_t ticks) const;
  double uncertainty() const { return uncertainty_; }  // in seconds, to either side

 private:
  uint32_t bits_;
  double period_ns_;
  uint64_t first_ticks_ = 0;
  double first_seconds_ = 0, rate_ = 1, uncertainty_ = 0;
};

}  // namespace vitrine
