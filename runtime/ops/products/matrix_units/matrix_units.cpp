#include "runtime/ops/products/matrix_units/matrix_units.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "runtime/ops/occupancy.h"

namespace vitrine {
namespace {

constexpr uint32_t amd = 0x1002;

uint64_t products(const CooperativeShape& matrix) { return uint64_t{matrix.m} * matrix.n * matrix.k; }

}  // namespace

std::vector<CooperativeShape> half_matrices(const Capabilities& device) {
  std::vector<CooperativeShape> matrices;
  for (const CooperativeShape& matrix : device.cooperative_shapes) {
    const bool half = matrix.a == "f16" && matrix.b == "f16" && matrix.c == "f32" && matrix.result == "f32";
    if (half && matrix.k % 8 == 0 && matrix.n % 4 == 0) matrices.push_back(matrix);
  }
  std::ranges::stable_sort(matrices, std::ranges::greater(), products);
  return matrices;
}

bool lists_half_sums(const Capabilities& device, const CooperativeShape& matrix) {
  return std::ranges::any_of(device.cooperative_shapes, [&](const CooperativeShape& other) {
    return other.m == matrix.m && other.n == matrix.n && (other.c == "f16" || other.result == "f16");
  });
}

std::vector<FlexibleShape> half_grains(const Capabilities& device, uint32_t workgroup) {
  std::vector<FlexibleShape> grains;
  std::ranges::copy_if(device.flexible_shapes, std::back_inserter(grains), [&](const FlexibleShape& grain) {
    return grain.a == "f16" && grain.b == "f16" && grain.c == "f32" && grain.result == "f32" &&
           grain.workgroup == workgroup;
  });
  return grains;
}

std::vector<uint32_t> matrix_subgroup_sizes(const Capabilities& device) {
  if (device.subgroup_size == 0 || !device.supports(Need::subgroup_control)) return {};
  std::vector<uint32_t> sizes{device.subgroup_size};
  const uint32_t native = device.matrix_subgroup_size;
  if (native != 0 && native >= device.min_subgroup_size && native < device.subgroup_size)
    sizes.insert(sizes.begin(), native);
  return sizes;
}

uint32_t shared_budget(const Capabilities& device, uint32_t subgroups) {
  if (device.vendor_id != amd) return device.max_shared_bytes;
  // What Vulkan reports is all that a compute unit has. Four waves on each of its two SIMDs hide latencies.
  constexpr uint32_t waves = 8;
  return static_cast<uint32_t>(uint64_t{device.max_shared_bytes} * std::min(subgroups, waves) / waves);
}

uint32_t tile_panel(uint32_t tile_m, uint32_t tile_n, const Capabilities& device) {
  const double rows = std::sqrt(compute_units(device) * tile_n / tile_m);
  return static_cast<uint32_t>(std::max(1.0, std::round(rows)));
}

}  // namespace vitrine
