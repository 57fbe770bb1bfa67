#include "runtime/vk/facts/hardware.h"

#include <vulkan/vulkan_core.h>

#include <algorithm>

namespace vitrine {
namespace {

// Vulkan's vendorIDs.
constexpr uint32_t amd = 0x1002, apple = 0x106b, arm = 0x13b5, intel = 0x8086, nvidia = 0x10de,
                   qualcomm = 0x5143;

constexpr double words_of_64_kib = 16384;

// Multiply-adds, matrices', bytes of shared memory a cycle; schedulers, KiB of shared memory, registers.
PublishedRates rates(double multiply_adds, double matrices, double shared_bytes, double schedulers,
                     double shared_kib, double registers) {
  return {.multiply_adds = multiply_adds,
          .matrix_multiply_adds = matrices,
          .shared_bytes = shared_bytes,
          .schedulers = schedulers,
          .shared_kib = shared_kib,
          .registers = registers};
}

// Matrices of 8-bit floats, by which RDNA 4 is known from RDNA 3, where the driver is new enough to list
// them.
bool has_small_floats(const Capabilities& device) {
  return std::ranges::any_of(device.cooperative_shapes,
                             [](const CooperativeShape& shape) { return shape.a == "e4m3"; });
}

// bench/zoo_figures.py names the documents. Of NVIDIA's generations those of the first that holds as many
// warps: Turing 32, GA102 to Blackwell 48, GA100 and Hopper 64.
PublishedRates amd_rates(const Capabilities& device) {
  if (device.min_subgroup_size == 64) return rates(64, 0, 128, 4, 64, 4 * words_of_64_kib);
  if (device.cooperative_shapes.empty()) return rates(64, 0, 128, 2, 64, 4 * words_of_64_kib);
  return rates(128, has_small_floats(device) ? 512 : 256, 128, 2, 64, 6 * words_of_64_kib);
}

// An H100 reads 14 to 21 bytes a cycle and unit from the cache, while all do. Its driver lets as many
// workgroups run on a unit as share what one may take, not what there is (docs/benchmarks_gpu.md).
PublishedRates nvidia_rates(const Capabilities& device) {
  const bool matrices = !device.cooperative_shapes.empty();
  PublishedRates found = rates(128, matrices ? 256 : 0, 128, 4, 100, 4 * words_of_64_kib);
  if (device.unit_subgroups == 32) found = rates(64, 256, 128, 4, 64, 4 * words_of_64_kib);
  if (device.unit_subgroups == 64) found = rates(64, matrices ? 1024 : 0, 128, 4, 164, 4 * words_of_64_kib);
  found.cache_bytes = 16;
  if (device.driver_id == VK_DRIVER_ID_NVIDIA_PROPRIETARY)
    found.shared_kib = device.max_shared_bytes / 1024.0;
  return found;
}

// Engines have 7 threads of 128 registers up to Xe-LP and 8 from Xe-HPG on, which has the first matrix units.
PublishedRates intel_rates(const Capabilities& device) {
  const bool matrices = !device.cooperative_shapes.empty();
  const double engines = device.min_subgroup_size == 16 ? 8 : 16;
  return rates(128, matrices ? 1024 : 0, 128, engines, matrices ? 128 : 64,
               engines * (matrices ? 8 : 7) * device.subgroup_registers);
}

// Vulkan leaves it to drivers, so it is known of those alone whose sources say it: Mesa's
// radv_nir_lower_cooperative_matrix.c (for waves of 32) and lvp_nir_lower_cooperative_matrix.c.
MatrixSums known_sums(const Capabilities& device) {
  if (device.cooperative_shapes.empty()) return MatrixSums::unknown;
  switch (device.driver_id) {
    case VK_DRIVER_ID_MESA_RADV:
      return has_small_floats(device) ? MatrixSums::operands : MatrixSums::alternate;
    case VK_DRIVER_ID_MESA_LLVMPIPE:
      return MatrixSums::transposed;
    default:
      return MatrixSums::unknown;
  }
}

}  // namespace

void add_hardware_facts(Capabilities& device) {
  device.matrix_sums = known_sums(device);
  switch (device.vendor_id) {
    case amd:
      device.lane_registers = 256;
      device.matrix_subgroup_size = 32;
      // RDNA 3 holds each row of A and column of B twice in 32 lanes, four times in 64.
      if (!device.cooperative_shapes.empty() && !has_small_floats(device)) device.matrix_operand_lanes = 16;
      device.published = amd_rates(device);
      break;
    case nvidia:
      device.lane_registers = 256;  // one of them is zero
      device.published = nvidia_rates(device);
      break;
    case apple:
      device.lane_registers = 128;
      device.published = rates(128, 0, 128, 4, 64, 3.25 * words_of_64_kib);
      break;
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
      device.published = intel_rates(device);
      break;
    default:
      break;
  }
}

}  // namespace vitrine
