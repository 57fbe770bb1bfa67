#include "runtime/graph/trace/clocks.h"

#include <volk.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "runtime/graph/trace/timestamps.h"
#include "runtime/util/system.h"

namespace vitrine {
namespace {

// Other systems' steady clocks can't be named to Vulkan with certainty.
constexpr VkTimeDomainKHR host_domain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_KHR;

bool knows_host_domain(const Device& device) {
  const auto get = device.instance().functions().get_instance_proc_addr;
  PFN_vkVoidFunction found = nullptr;
  for (const char* name :
       {"vkGetPhysicalDeviceCalibrateableTimeDomainsKHR", "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT"}) {
    if (found == nullptr) found = get(device.instance().handle(), name);
  }
  if (found == nullptr) return false;
  const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR>(found);
  uint32_t count = 0;
  if (list(device.physical(), &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkTimeDomainKHR> domains(count);
  if (list(device.physical(), &count, domains.data()) < VK_SUCCESS) return false;
  const auto has = [&](VkTimeDomainKHR one) { return std::ranges::find(domains, one) != domains.end(); };
  return has(VK_TIME_DOMAIN_DEVICE_KHR) && has(host_domain);
}

}  // namespace

double host_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<ClockPair> read_clocks(const Device& device) {
  if (!device.calibrates_timestamps() || !system::steady_clock_is_monotonic || !knows_host_domain(device))
    return std::nullopt;
  const VolkDeviceTable& vk = device.vk();
  const auto read = vk.vkGetCalibratedTimestampsKHR != nullptr
                        ? vk.vkGetCalibratedTimestampsKHR
                        : reinterpret_cast<PFN_vkGetCalibratedTimestampsKHR>(vk.vkGetCalibratedTimestampsEXT);
  std::array<VkCalibratedTimestampInfoKHR, 2> clocks{};
  clocks[0].sType = clocks[1].sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_KHR;
  clocks[0].timeDomain = VK_TIME_DOMAIN_DEVICE_KHR;
  clocks[1].timeDomain = host_domain;
  std::array<uint64_t, 2> values{};
  uint64_t deviation = 0;
  if (read(device.handle(), 2, clocks.data(), values.data(), &deviation) != VK_SUCCESS) return std::nullopt;
  return ClockPair{static_cast<double>(values[1]) * 1e-9, values[0], static_cast<double>(deviation) * 1e-9};
}

void DeviceClock::match(const ClockPair& before, const ClockPair& after) {
  first_ticks_ = before.ticks;
  first_seconds_ = before.host;
  const double by_device = seconds_between(before.ticks, after.ticks, bits_, period_ns_);
  // Two crystals differ by some millionths; what goes beyond that is no rate but a clock that began anew.
  const double rate = by_device > 0 ? (after.host - before.host) / by_device : 1;
  rate_ = rate > 0.99 && rate < 1.01 ? rate : 1;
  uncertainty_ = std::max(before.deviation, after.deviation);
}

void DeviceClock::match(std::span<const Bracket> brackets) {
  if (brackets.empty()) return;
  first_ticks_ = brackets.front().begin;
  first_seconds_ = 0;
  rate_ = 1;
  double earliest = -std::numeric_limits<double>::max(), latest = std::numeric_limits<double>::max();
  for (const Bracket& one : brackets) {
    earliest = std::max(earliest, one.submitted - at(one.begin));
    latest = std::min(latest, one.seen - at(one.end));
  }
  first_seconds_ = (earliest + latest) / 2;
  uncertainty_ = std::max(0.0, latest - earliest) / 2;
}

double DeviceClock::at(uint64_t ticks) const {
  return first_seconds_ + rate_ * seconds_between(first_ticks_, ticks, bits_, period_ns_);
}

}  // namespace vitrine
