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

}  // namespace vitrine
