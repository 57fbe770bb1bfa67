// The kernel of matmul for matrices that a workgroup holds
// (shaders/products/matrix_units/matmul_coopmat2.comp).
#include <algorithm>
#include <array>
#include <iterator>

#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/products/matrix_units/matrix_units.h"

namespace vitrine {
namespace {

// 128x256 is 128 registers of sums in each of 256 invocations, half of what NVIDIA's have: the largest that
// leaves room for the fragments. Two such workgroups don't fit a multiprocessor's registers, so that its
// loads hide behind its own products only, and 64 deep steps make these long; a step's slices take 48 KiB,
// which every multiprocessor since Turing has. The smaller ones are for products that leave multiprocessors
// without a tile.
constexpr std::array<Coopmat2Shape, 6> shapes{{
    {.threads = 256, .tile_m = 128, .tile_n = 256, .step_k = 64},
    {.threads = 256, .tile_m = 128, .tile_n = 128, .step_k = 64},
    {.threads = 128, .tile_m = 64, .tile_n = 128, .step_k = 64},
    {.threads = 128, .tile_m = 64, .tile_n = 64, .step_k = 64},
    {.threads = 128, .tile_m = 32, .tile_n = 64, .step_k = 64},
    {.threads = 128, .tile_m = 128, .tile_n = 128, .step_k = 32},
}};

bool fits(const Coopmat2Shape& shape, const Capabilities& device) {
  const uint32_t longest = std::max({shape.tile_m, shape.tile_n, shape.step_k});
  if (shape.threads > device.max_workgroup_invocations || shape.threads > device.max_workgroup_size[0] ||
      longest > device.flexible_max_dimension ||
      2 * (shape.tile_m + shape.tile_n) * shape.step_k > device.max_shared_bytes) {
    return false;
  }
  return std::ranges::any_of(half_grains(device, shape.threads), [&](const FlexibleShape& grain) {
    return shape.tile_m % grain.m == 0 && shape.tile_n % grain.n == 0 && shape.step_k % grain.k == 0;
  });
}

std::vector<Coopmat2Shape> in_order(const LowerContext& context) {
  return ranked(coopmat2_shapes(context.device()), context);
}

}  // namespace

// How the driver stages is its own affair; this is what it can't do without: a step's slices in shared
// memory, each read by a row or a column of subgroups, which stand in two rows.
TileWorth Coopmat2Shape::worth() const {
  const double subgroups = std::max(1.0, threads / 32.0), rows = subgroups > 1 ? 2 : 1;
  return {.tile_m = tile_m,
          .tile_n = tile_n,
          .threads = threads,
          .registers = 60.0 + tile_m * tile_n / static_cast<double>(threads),
          .shared_bytes = 2.0 * (tile_m + tile_n) * step_k,
          .step_k = step_k,
          .shared_traffic = 2.0 * step_k * (tile_m * subgroups / rows + tile_n * rows),
          .instructions = 16.0 * threads,
          .instructions_once = 2.0 * tile_m * tile_n + 60.0 * threads,
          .ahead = 1,
          .matrix_units = true};
}

std::string Coopmat2Shape::name() const {
  return std::to_string(tile_m) + "x" + std::to_string(tile_n) + "x" + std::to_string(step_k) + "/" +
         std::to_string(threads);
}

std::vector<Coopmat2Shape> coopmat2_shapes(const Capabilities& device) {
  std::vector<Coopmat2Shape> fitting;
  std::ranges::copy_if(shapes, std::back_inserter(fitting),
                       [&](const Coopmat2Shape& shape) { return fits(shape, device); });
  return fitting;
}

Lowered lower_coopmat2_as(const LowerContext& context, const Coopmat2Shape& shape) {
  const MatmulSizes sizes = matmul_sizes(context);
  Dispatch dispatch;
  dispatch.shader = &find_shader("matmul_coopmat2", matmul_variant(context));
  dispatch.constants = epilogue_constants(context);
  dispatch.add_constants({{"local_size", shape.threads},
                          {"tile_m", shape.tile_m},
                          {"tile_n", shape.tile_n},
                          {"step_k", shape.step_k},
                          {"whole_steps", sizes.k % shape.step_k == 0},
                          {"panel", tile_panel(shape.tile_m, shape.tile_n, context.device())},
                          {"k_by_eight", sizes.k % 8 == 0},
                          {"n_by_eight", sizes.n % 8 == 0}});
  dispatch.operands = matmul_operands(context);
  dispatch.note = std::to_string(shape.tile_m) + "x" + std::to_string(shape.tile_n);
  return lower_in_tiles(context, std::move(dispatch), shape.worth(), {.count = 1, .length = sizes.k});
}

std::optional<std::string> refuse_coopmat2(const LowerContext& context) {
  if (auto reason = refuse_transposed(context)) return reason;
  if (context.input(matmul_input::x).dtype != DType::f16) return "matrix units multiply f16, x is f32";
  if (auto reason = refuse(context, "matmul_coopmat2", matmul_variant(context))) return reason;
  if (coopmat2_shapes(context.device()).empty()) {
    return "the device lists no flexible matrix of f16 x f16 + f32 for a workgroup that a tile fits";
  }
  return std::nullopt;
}

// Behind matrices of a subgroup: NVIDIA's driver (580) loads A, waits, stores it, loads W and waits again
// before it multiplies, and takes half as long again on an H100.
double prefer_coopmat2(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 0.3 : 1.95;
}

Lowered lower_coopmat2(const LowerContext& context) {
  return lower_coopmat2_as(context, configured(context, in_order(context)));
}

std::vector<std::string> coopmat2_configurations(const LowerContext& context) {
  return names_of(in_order(context));
}

}  // namespace vitrine
