#include "runtime/vk/hardware.h"

#include <vulkan/vulkan_core.h>

namespace vitrine {
namespace {

// Vulkan's vendorIDs.
constexpr uint32_t amd = 0x1002, apple = 0x106b, arm = 0x13b5, intel = 0x8086, nvidia = 0x10de,
                   qualcomm = 0x5143;

}  // namespace

void add_hardware_facts(Capabilities& device) {
  switch (device.vendor_id) {
    case amd:
      device.lane_registers = 256;
      // RDNA 3 and later hold each row of A and column of B twice in 32 lanes, four times in 64.
      device.matrix_subgroup_size = 32;
      break;
    case nvidia:
      device.lane_registers = 256;  // one of them is zero
      break;
    case apple:
    case qualcomm:
      device.lane_registers = 128;
      break;
    case arm:
      device.lane_registers = 64;
      break;
    case intel:
      // 128 registers a thread, of 32 bytes where its smallest subgroup has 8 lanes, of 64 from Xe2 on, where
      // it has 16; and the matrix units take a register's lanes. A thread may have 256 from Xe-HP on, which
      // leaves half as many threads to hide latencies.
      device.subgroup_registers = 128 * device.min_subgroup_size;
      device.matrix_subgroup_size = device.min_subgroup_size;
      break;
    default:
      break;
  }
}

}  // namespace vitrine
