// The shared-memory kernel of matmul (shaders/matmul_tiled.comp).
#include <algorithm>
#include <array>

#include "runtime/ops/lowering.h"
#include "runtime/ops/matmul_kernels.h"

namespace vitrine {
namespace {

// The speeds follow from how many multiply-adds a value that is read from shared memory serves. The
// largest tile needs 152 registers an invocation, which spills on the Adreno 660 and the Apple M1: it is
// for discrete GPUs. The last ones are for a handful of rows, such as one image's class token.
constexpr std::array<TiledShape, 7> shapes{{
    {.tile_m = 128, .tile_n = 128, .step_k = 16, .thread_m = 8, .thread_n = 8, .speed = 1.0},
    {.tile_m = 64, .tile_n = 128, .step_k = 16, .thread_m = 4, .thread_n = 8, .speed = 0.85},
    {.tile_m = 64, .tile_n = 64, .step_k = 16, .thread_m = 4, .thread_n = 4, .speed = 0.7},
    {.tile_m = 32, .tile_n = 64, .step_k = 16, .thread_m = 4, .thread_n = 4, .speed = 0.6},
    {.tile_m = 32, .tile_n = 32, .step_k = 16, .thread_m = 4, .thread_n = 4, .speed = 0.5},
    {.tile_m = 16, .tile_n = 32, .step_k = 16, .thread_m = 2, .thread_n = 4, .speed = 0.35},
    {.tile_m = 4, .tile_n = 64, .step_k = 32, .thread_m = 1, .thread_n = 4, .speed = 0.2},
}};

// Those that fit, the best first.
std::vector<TiledShape> shapes_for(const LowerContext& context) {
  std::vector<TiledShape> fitting;
  for (TiledShape shape : shapes) {
    if (!fits(shape, context.device())) continue;
    // A software driver gains nothing from shared memory, only from few barriers a multiply-add: 32x32 was
    // measured twice as fast as the tiles above it.
    if (context.device().type == DeviceType::cpu && shape.threads() > 64) shape.speed = 0.25;
    fitting.push_back(shape);
  }
  return ranked(fitting, context);
}

}  // namespace

std::string TiledShape::name() const {
  return std::to_string(tile_m) + "x" + std::to_string(tile_n) + "x" + std::to_string(step_k) + "/" +
         std::to_string(thread_m) + "x" + std::to_string(thread_n);
}

std::span<const TiledShape> tiled_shapes() { return shapes; }

bool fits(const TiledShape& shape, const Capabilities& device) {
  const bool many_registers = shape.thread_m * shape.thread_n > 32;
  return shape.threads() <= device.max_workgroup_invocations &&
         shape.threads() <= device.max_workgroup_size[0] && shape.shared_bytes() <= device.max_shared_bytes &&
         (!many_registers || device.type == DeviceType::discrete || device.type == DeviceType::cpu);
}

Lowered lower_tiled_as(const LowerContext& context, const TiledShape& shape) {
  const MatmulSizes sizes = matmul_sizes(context);
  const uint64_t tiles_m = ceil_div(sizes.m, shape.tile_m);
  const uint64_t tiles = tiles_m * ceil_div(sizes.n, shape.tile_n);

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("matmul_tiled", matmul_variant(context));
  dispatch.constants = epilogue_constants(context);
  dispatch.constants.insert(dispatch.constants.end(),
                            {shape.threads(), shape.tile_m, shape.tile_n, shape.step_k / 4, shape.thread_m,
                             shape.thread_n, sizes.k % 4 == 0});
  dispatch.operands = matmul_operands(context);
  dispatch.set_params(shader::MatmulParams{.m = to_u32(sizes.m),
                                           .n = to_u32(sizes.n),
                                           .k = to_u32(sizes.k),
                                           .tiles_m = to_u32(tiles_m),
                                           .tiles = to_u32(tiles)});
  dispatch.groups = spread_groups(context.device(), tiles);
  dispatch.note = std::to_string(shape.tile_m) + "x" + std::to_string(shape.tile_n);
  lowered.in_place = matmul_in_place(context);
  return lowered;
}

std::optional<std::string> refuse_tiled(const LowerContext& context) {
  if (auto reason = refuse(context, "matmul_tiled", matmul_variant(context))) return reason;
  const auto fitting = [&](const TiledShape& shape) { return fits(shape, context.device()); };
  if (std::none_of(shapes.begin(), shapes.end(), fitting)) return "no tile fits the device's workgroups";
  return std::nullopt;
}

double prefer_tiled(const LowerContext&) { return 1; }

Lowered lower_tiled(const LowerContext& context) {
  return lower_tiled_as(context, configured(context, shapes_for(context)));
}

std::vector<std::string> tiled_configurations(const LowerContext& context) {
  return names_of(shapes_for(context));
}

}  // namespace vitrine
