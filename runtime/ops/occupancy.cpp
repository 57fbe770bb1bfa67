#include "runtime/ops/occupancy.h"

namespace vitrine {

double registers_of_lane(const Capabilities& device, uint32_t subgroup_size) {
  if (device.lane_registers != 0) return device.lane_registers;
  if (device.subgroup_registers != 0) {
    const uint32_t lanes = subgroup_size != 0 ? subgroup_size : device.min_subgroup_size;
    return static_cast<double>(device.subgroup_registers) / std::max(lanes, 1u);
  }
  return device.type == DeviceType::discrete || device.type == DeviceType::cpu ? 256 : 128;
}

// 208 of 256, 104 of 128: with that nothing spills on the GPUs of docs/zoo.md.
double register_budget(const Capabilities& device, uint32_t subgroup_size) {
  return 13.0 / 16 * registers_of_lane(device, subgroup_size);
}

double compute_units(const Capabilities& device) {
  if (device.multiprocessors != 0) return device.multiprocessors;
  return device.type == DeviceType::discrete ? 48 : device.type == DeviceType::cpu ? 4 : 12;
}

double filling_groups(const Capabilities& device) { return 2 * compute_units(device); }

double filling_invocations(const Capabilities& device) {
  return (device.type == DeviceType::cpu ? 32 : 256) * filling_groups(device);
}

// Fewer than four waves a SIMD, or warps a scheduler, don't hide memory's latency. Of 64 KiB of shared memory
// and 65536 registers that leaves 64 bytes and registers an invocation where they have 64 lanes (AMD's GCN,
// Adreno), twice as many where they have 32 (NVIDIA) or where there is twice as much (RDNA). Where a subgroup
// has its registers to itself, they don't.
double crowding(const Capabilities& device, double shared_bytes, double registers) {
  const bool roomy = device.type == DeviceType::discrete && device.min_subgroup_size < 64;
  const double room = roomy ? 128 : 64;
  const double by_registers = device.subgroup_registers != 0 ? 1 : registers / room;
  return std::max({1.0, shared_bytes / room, by_registers});
}

}  // namespace vitrine
