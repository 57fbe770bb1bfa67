#include "runtime/ops/cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/ops/occupancy.h"

namespace vitrine {
namespace {

double known_or(double value, double guess) { return value > 0 ? value : guess; }

// Cards and chips of the last ten years have about as much bandwidth a compute unit: RTX 3090 11 GB/s, RX
// 7900 XTX 10, RTX 4090 8, M2 Max 10, Radeon 680M 8. Server GPUs have three times as much.
double memory_rate(const Capabilities& device, double units) {
  if (device.published.memory_gb_per_second > 0) return 1e9 * device.published.memory_gb_per_second;
  if (device.type == DeviceType::cpu) return 20e9;
  return (device.type == DeviceType::discrete ? 10e9 : 8e9) * units;
}

double guessed_hertz(const Capabilities& device) {
  return device.type == DeviceType::cpu ? 3e9 : device.type == DeviceType::discrete ? 1.8e9 : 1.2e9;
}

// Workgroups that a unit has room for.
double room_for(const Work& work, const DeviceRates& rates, const Capabilities& device) {
  const double lanes = std::max(1u, work.subgroup_size != 0 ? work.subgroup_size : device.subgroup_size);
  const double subgroups = std::ceil(std::max(1.0, work.threads / lanes));
  // Compilers take some for themselves.
  const double registers =
      device.subgroup_registers != 0 ? device.subgroup_registers : std::max(32.0, work.registers) * lanes;
  return std::min({rates.room_subgroups / subgroups, rates.room_registers / (subgroups * registers),
                   rates.room_shared / std::max(1.0, work.shared_bytes)});
}

struct Part {
  Bound bound;
  double cycles;
};

// Cores take workgroups in turn, each an eighth of all threads' work at the most: no tail is seen. What
// shared memory and registers cost there, a kernel has measured.
double cycles_on_cpu(const Work& work, const DeviceRates& rates) {
  const double of_group = (work.multiply_adds + work.matrix_multiply_adds) / work.cpu_speed;
  return of_group * std::max(work.groups, 2 * rates.units) / rates.units / rates.multiply_adds;
}

Part longest(std::initializer_list<Part> parts) { return std::ranges::max(parts, {}, &Part::cycles); }

}  // namespace

std::string_view name_of(Bound bound) {
  static constexpr std::array<std::string_view, 8> names{
      "arithmetic", "matrix units", "instructions", "shared memory", "cache", "memory", "waiting", "launch"};
  return names[static_cast<size_t>(bound)];
}

DeviceRates rates_of(const Capabilities& device) {
  const PublishedRates& published = device.published;
  DeviceRates rates;
  rates.units = compute_units(device);
  rates.hertz = known_or(1e9 * published.clock_ghz, guessed_hertz(device));
  rates.multiply_adds = known_or(published.multiply_adds, device.type == DeviceType::cpu ? 8 : 64);
  // Matrices that a device lists without a rate are as fast as the slowest that is known.
  rates.matrix_multiply_adds = known_or(published.matrix_multiply_adds, 256);
  // Loads and addresses go beside multiply-adds where these don't take all of a unit's slots.
  rates.instructions = std::max(rates.multiply_adds, device.type == DeviceType::cpu ? 8.0 : 128.0);
  rates.shared_bytes = known_or(published.shared_bytes, 128);
  rates.schedulers = known_or(published.schedulers, device.type == DeviceType::cpu ? 1 : 4);
  // What each unit reads from a cache that all share; together they get about half of that.
  rates.moved_bytes = 64;
  rates.cache_bytes = known_or(published.cache_bytes, 32) * rates.units;
  rates.memory_bytes = memory_rate(device, rates.units) / rates.hertz;
  const double mib = device.type == DeviceType::discrete ? 6 : 2;
  rates.cache_size = 1048576 * known_or(published.cache_mib, mib);
  // Where one workgroup may take less than there is, it is mostly half.
  const double most_kib = std::max(32.0, device.max_shared_bytes / 1024.0);
  rates.room_shared =
      std::max<double>(device.max_shared_bytes, 1024 * known_or(published.shared_kib, 2 * most_kib));
  rates.room_registers =
      known_or(published.registers, std::max(256 * registers_of_lane(device), 1024.0 * device.subgroup_size));
  const double slots =  // where threads have registers of their own, there are as many as registers
      device.subgroup_registers != 0 ? rates.room_registers / device.subgroup_registers : 32;
  rates.room_subgroups = known_or(device.unit_subgroups, slots);
  rates.memory_latency = 300;  // mostly of the cache
  rates.barrier = 40;
  rates.launch = device.type == DeviceType::cpu ? 20e-6 : device.type == DeviceType::discrete ? 3e-6 : 6e-6;
  return rates;
}

Estimate estimate(const Work& work, const Capabilities& device) {
  const DeviceRates rates = rates_of(device);
  const double moved =
      work.constant_bytes + (work.resident_bytes <= rates.cache_size ? 0 : work.resident_bytes);
  const Part memory{Bound::memory, moved / rates.memory_bytes};
  const double launch = work.dispatches * rates.launch;
  Estimate result;
  result.resident = 1;
  result.used_units = std::min(1.0, work.groups / rates.units);
  const auto finished = [&](const Part& longest_part) {
    const double seconds = longest_part.cycles / rates.hertz;
    result.seconds = seconds + launch;
    result.bound = seconds < launch ? Bound::launch : longest_part.bound;
    return result;
  };
  // What a core loads it doesn't compute with at the same time.
  if (device.type == DeviceType::cpu)
    return finished({Bound::arithmetic, cycles_on_cpu(work, rates) + memory.cycles});

  const double lanes = std::max(1u, work.subgroup_size != 0 ? work.subgroup_size : device.subgroup_size);
  const double subgroups = std::ceil(std::max(1.0, work.threads / lanes));
  // How long a workgroup keeps each part of a unit busy. Parts overlap, but never wholly: of what is not the
  // longest half is seen, or a tile that just keeps two parts busy would be as good as one that spares
  // one.
  constexpr double seen = 0.5;
  // Lanes of a subgroup that have no invocation take their turns, too.
  const double turns = subgroups * lanes / std::max<double>(1, work.threads);
  const Part arithmetic =
      longest({{Bound::arithmetic, turns * work.multiply_adds / rates.multiply_adds},
               {Bound::instructions, turns * (work.multiply_adds + work.instructions) / rates.instructions}});
  const Part matrices{Bound::matrix_units, work.matrix_multiply_adds / rates.matrix_multiply_adds};
  const Part shared{Bound::shared_memory, work.shared_traffic / rates.shared_bytes};
  const Part cache{Bound::cache, work.moved / rates.moved_bytes};
  const auto together = [&](double share) {
    const Part first{arithmetic.bound, arithmetic.cycles / share},
        second{matrices.bound, matrices.cycles / share};
    Part all = longest({first, second, shared, cache});
    all.cycles += seen * (first.cycles + second.cycles + shared.cycles + cache.cycles - all.cycles);
    return all;
  };
  const Part busiest = together(1);
  // Alone it has as many schedulers as it has subgroups.
  const double moving = together(std::min(1.0, subgroups / rates.schedulers)).cycles;
  const double exposed = work.ahead > 0 && work.rounds > 0
                             ? std::max(0.0, rates.memory_latency / work.ahead - moving / work.rounds) +
                                   rates.barrier + work.pause
                             : rates.memory_latency + 2 * rates.barrier;
  const double alone = moving + work.rounds * exposed + rates.memory_latency;

  const double room = std::max(1.0, room_for(work, rates, device));
  result.resident = std::floor(room);
  const double given = std::ceil(work.groups / rates.units);
  // What a scheduler holds is known where a subgroup's registers are, and isn't limited by them where each
  // has its own.
  if (device.published.registers != 0 && device.subgroup_registers == 0)
    result.subgroups = room * subgroups / rates.schedulers;
  // Who doesn't fetch ahead needs four subgroups a scheduler to hide memory's latency.
  const bool crowds = work.ahead == 0 && work.rounds > 0 && result.subgroups != 0;
  const double crowding = crowds ? std::max(1.0, 4 / result.subgroups) : 1;
  return finished(longest({{busiest.bound, given * crowding * busiest.cycles},
                           {Bound::waiting, std::ceil(given / result.resident) * alone},
                           {Bound::cache, work.groups * work.moved / rates.cache_bytes},
                           memory}));
}

Work plain_work(const Dispatch& dispatch, const Cost& cost, double constant_bytes, size_t dispatches) {
  const double share = 1.0 / static_cast<double>(std::max<size_t>(dispatches, 1));
  Work work;
  work.groups = static_cast<double>(dispatch.groups[0]) * dispatch.groups[1] * dispatch.groups[2];
  for (const NamedConstant& constant : dispatch.constants) {
    if (constant.name == "local_size") work.threads = constant.value;
  }
  work.subgroup_size = dispatch.subgroup_size;
  work.multiply_adds = share * cost.flops / 2 / work.groups;
  work.moved = share * cost.bytes / work.groups;
  work.instructions = work.moved / 2;  // one for each half, at the least
  work.constant_bytes = share * constant_bytes;
  work.resident_bytes = share * std::max(0.0, cost.bytes - constant_bytes);
  return work;
}

}  // namespace vitrine
