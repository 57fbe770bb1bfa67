// What the kernels for matrix units share: which matrices a device offers, at which subgroup sizes, how much
// shared memory a workgroup should take, and which tile finishes first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/vk/capabilities.h"

namespace vitrine {

// The listed matrices of f16 x f16 + f32 that the shaders can stage: K a multiple of 8, N one of 4. The
// largest first; of equals the driver's favourite.
std::vector<CooperativeShape> half_matrices(const Capabilities& device);

// Whether it lists sums of f16 of the same size, which these accumulators can be converted to.
bool lists_half_sums(const Capabilities& device, const CooperativeShape& matrix);

// The listed flexible matrices of f16 x f16 + f32 that a workgroup of so many invocations holds; 0: a
// subgroup.
std::vector<FlexibleShape> half_grains(const Capabilities& device, uint32_t workgroup);

// Subgroup sizes to try, the preferred one first; empty when the device can't be asked for one.
std::vector<uint32_t> matrix_subgroup_sizes(const Capabilities& device);

// Whether a workgroup of so many invocations may work on matrices: also where the kernel asks for smaller
// subgroups, the length of a row of it has to be a multiple of the device's own size.
inline bool fills_subgroups(const Capabilities& device, uint32_t threads) {
  return threads % device.subgroup_size == 0;
}

// Bytes of shared memory that a workgroup of so many subgroups may take.
uint32_t shared_budget(const Capabilities& device, uint32_t subgroups);

// Rows of tiles in a panel (shaders/lib/panels.glsl): what runs at a time covers about a square of outputs.
uint32_t tile_panel(uint32_t tile_m, uint32_t tile_n, const Capabilities& device);

}  // namespace vitrine
