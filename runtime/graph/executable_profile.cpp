// The instrumented second recordings: the fast path carries no queries.
#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/graph/executable.h"
#include "runtime/graph/trace/timestamps.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

// Seconds between each timestamp and the one before it.
std::vector<double> intervals_of(const Timestamps& timestamps, const Capabilities& caps) {
  const std::vector<uint64_t> ticks = timestamps.ticks();
  std::vector<double> seconds;
  for (size_t i = 1; i < ticks.size(); ++i) {
    seconds.push_back(
        seconds_between(ticks[i - 1], ticks[i], caps.timestamp_valid_bits, caps.timestamp_period_ns));
  }
  return seconds;
}

}  // namespace

bool Executable::run_marked(bool each_alone, const Marker& mark, const GoOn& go_on) {
  if (device_.capabilities().timestamp_valid_bits == 0) {
    throw Error(ErrorCode::failed,
                "'" + device_.capabilities().name +
                    "' has no timestamps on its compute queue, so nothing can be profiled");
  }
  for (Set& set : sets_) settle(set);
  Set& set = sets_.front();
  CommandPool pool(device_);
  const std::vector<VkCommandBuffer> slices = record_slices(pool, set, each_alone, mark);
  begin(set);
  if (go_on) {
    if (!run_slices(set, slices, go_on)) return false;
  } else {
    submit_slices(set, slices);
  }
  wait(0);
  return true;
}

double Executable::device_seconds() {
  Timestamps timestamps(device_, 2);
  bool first = true;
  run_marked(false, [&](VkCommandBuffer commands, Mark mark) {
    if (std::exchange(first, false)) {
      timestamps.reset(commands);
      timestamps.write(commands, 0);
    }
    if (mark.step_ends && mark.step + 1 == plan_.steps.size()) timestamps.write(commands, 1);
  });
  return intervals_of(timestamps, device_.capabilities()).front();
}

std::optional<Profile> Executable::profile(const GoOn& go_on) {
  Timestamps timestamps(device_, timestamps_of(plan_));
  uint32_t next = 0;
  std::vector<std::optional<size_t>> step_of;  // by interval
  // Each step alone: with overlapping neighbours its time would mean nothing.
  const bool whole = run_marked(
      true,
      [&](VkCommandBuffer commands, Mark mark) {
        if (next == 0) timestamps.reset(commands);
        if (next > 0) step_of.push_back(mark.slice_begins ? std::nullopt : std::optional(mark.step));
        timestamps.write(commands, next++);
      },
      go_on);
  if (!whole) return std::nullopt;

  Profile profile{.step_seconds = std::vector<double>(plan_.steps.size())};
  const std::vector<double> intervals = intervals_of(timestamps, device_.capabilities());
  for (size_t i = 0; i < intervals.size(); ++i) {
    if (step_of[i]) profile.step_seconds[*step_of[i]] += intervals[i];
  }
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    profile.total_seconds += profile.step_seconds[i];
    plan_.steps[i].seconds = profile.step_seconds[i];
  }
  cut_anew();
  return profile;
}

// The estimate of the plan gives way to the measurement.
void Executable::cut_anew() {
  const std::vector<Step> before = plan_.steps;
  plan_.slice_count = assign_slices(plan_.steps, plan_.options.slice_seconds);
  const bool same = std::ranges::equal(before, plan_.steps, [](const Step& a, const Step& b) {
    return a.slice == b.slice && a.parts == b.parts;
  });
  if (same) return;
  commands_.reset();
  for (Set& set : sets_) record(set);
  if (plan_.options.warn && plan_.device.type != DeviceType::cpu)
    std::ranges::for_each(overlong_steps(plan_), plan_.options.warn);
}

}  // namespace vitrine
