// The instrumented second recordings: the fast path carries no queries.
#include <volk.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/graph/executable.h"
#include "runtime/util/error.h"
#include "runtime/vk/result.h"

namespace vitrine {
namespace {

class Timestamps {
 public:
  Timestamps(Device& device, uint32_t count) : device_(device), count_(count) {
    VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = count;
    check(device_.vk().vkCreateQueryPool(device_.handle(), &info, nullptr, &pool_), "vkCreateQueryPool");
  }
  ~Timestamps() { device_.vk().vkDestroyQueryPool(device_.handle(), pool_, nullptr); }
  Timestamps(const Timestamps&) = delete;
  Timestamps& operator=(const Timestamps&) = delete;

  void reset(VkCommandBuffer commands) { device_.vk().vkCmdResetQueryPool(commands, pool_, 0, count_); }
  void write(VkCommandBuffer commands, uint32_t index) {
    device_.vk().vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool_, index);
  }
  // Seconds between each timestamp and the one before it.
  std::vector<double> intervals() {
    std::vector<uint64_t> ticks(count_);
    check(device_.vk().vkGetQueryPoolResults(device_.handle(), pool_, 0, count_, count_ * sizeof(uint64_t),
                                             ticks.data(), sizeof(uint64_t),
                                             VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
          "vkGetQueryPoolResults");
    const Capabilities& caps = device_.capabilities();
    const uint64_t mask = caps.timestamp_valid_bits >= 64 ? ~0ull : (1ull << caps.timestamp_valid_bits) - 1;
    std::vector<double> seconds;
    for (size_t i = 1; i < ticks.size(); ++i) {
      // Masked subtraction is right across the counter's wrap.
      seconds.push_back(static_cast<double>((ticks[i] - ticks[i - 1]) & mask) * caps.timestamp_period_ns *
                        1e-9);
    }
    return seconds;
  }

 private:
  Device& device_;
  uint32_t count_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
};

}  // namespace

bool Executable::run_marked(bool each_alone, const Marker& mark, const GoOn& go_on) {
  if (device_.capabilities().timestamp_valid_bits == 0) {
    throw Error(ErrorCode::failed,
                "'" + device_.capabilities().name +
                    "' has no timestamps on its compute queue, so nothing can be profiled");
  }
  for (Set& set : sets_) wait_for(set.finished_value);
  Set& set = sets_.front();
  CommandPool pool(device_);
  const std::vector<VkCommandBuffer> slices = record_slices(pool, set, each_alone, mark);
  for (const IoBuffer& io : set.inputs) io.host().flush();
  if (go_on) {
    if (!run_slices(set, slices, go_on)) return false;
  } else {
    set.finished_value = submit_slices(slices);
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
  return timestamps.intervals().front();
}

std::optional<Profile> Executable::profile(const GoOn& go_on) {
  // A slice has one at its beginning, too: what passes between two slices is no step's time.
  size_t count = plan_.slice_count;
  for (const Step& step : plan_.steps) count += std::max<size_t>(1, step.parts.size());
  Timestamps timestamps(device_, to_u32(count));
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
  const std::vector<double> intervals = timestamps.intervals();
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
  const std::vector<const Dispatch*> dispatches = plan_.dispatches();
  const Pipelines pipelines =
      weights_.pipelines().get(std::span(dispatches).first(plan_.steps.size()), {}, plan_.in_parts());
  commands_.reset();
  for (Set& set : sets_) {
    for (size_t i = 0; i < set.steps.size(); ++i) set.steps[i].use(pipelines[i]);
    record(set);
  }
  if (plan_.options.warn && plan_.device.type != DeviceType::cpu)
    std::ranges::for_each(overlong_steps(plan_), plan_.options.warn);
}

}  // namespace vitrine
