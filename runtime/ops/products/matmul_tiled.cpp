// The shared-memory kernel of matmul (shaders/products/matmul_tiled.comp).
#include <algorithm>
#include <array>

#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {
namespace {

// Vulkan's vendorID, and VkDriverIds of Apple's GPUs, of which Ubuntu 24.04's headers know one.
constexpr uint32_t amd = 0x1002;
constexpr uint32_t moltenvk = 14, honeykrisp = 26;

// The more sums an invocation has, the more multiply-adds a value serves that is read from shared memory, and
// the fewer invocations there are.
// Of the small ones, which are for grids that leave each core few subgroups, some load two steps ahead.
constexpr std::array<TiledShape, 10> shapes{{
    {.tile_m = 128, .tile_n = 128, .step_k = 16, .thread_m = 8, .thread_n = 8, .ahead = 1},
    {.tile_m = 64, .tile_n = 128, .step_k = 8, .thread_m = 8, .thread_n = 8, .ahead = 1},
    {.tile_m = 64, .tile_n = 64, .step_k = 16, .thread_m = 4, .thread_n = 8, .ahead = 0},
    {.tile_m = 32, .tile_n = 64, .step_k = 16, .thread_m = 4, .thread_n = 4, .ahead = 2},
    {.tile_m = 32, .tile_n = 64, .step_k = 16, .thread_m = 4, .thread_n = 4, .ahead = 1},
    {.tile_m = 32, .tile_n = 64, .step_k = 16, .thread_m = 4, .thread_n = 4, .ahead = 0},
    {.tile_m = 32, .tile_n = 32, .step_k = 16, .thread_m = 4, .thread_n = 4, .ahead = 2},
    {.tile_m = 32, .tile_n = 32, .step_k = 16, .thread_m = 4, .thread_n = 4, .ahead = 1},
    {.tile_m = 16, .tile_n = 32, .step_k = 16, .thread_m = 4, .thread_n = 4, .ahead = 2},
    {.tile_m = 16, .tile_n = 32, .step_k = 16, .thread_m = 4, .thread_n = 4, .ahead = 1},
}};

// GCN's subgroups of 64 share 256 registers a lane and 64 KiB of shared memory between four SIMDs: with the
// next step in registers and a second half of the tiles, two or three of them fit where four hide latency.
bool is_gcn(const Capabilities& device) { return device.vendor_id == amd && device.min_subgroup_size == 64; }

// RDNA's four SIMDs that share 128 KiB fit four waves of 64 each when a wave takes no more than this.
bool crowds_rdna(const TiledShape& shape, const Capabilities& device) {
  return device.vendor_id == amd && !is_gcn(device) &&
         shape.shared_bytes() > 8192 * ceil_div(shape.threads(), 64);
}

// What GCN hasn't got enough of: 8 x 8 sums leave it two subgroups a SIMD, too.
bool crowds_gcn(const TiledShape& shape, const Capabilities& device) {
  return is_gcn(device) && (shape.ahead > 0 || shape.thread_m * shape.thread_n > 32);
}

// Of the GPUs in docs/zoo_peers.md AMD's alone are slower by it, by 1 to 3 %; the others gain up to 7.
bool stages_one_way(const Capabilities& device) { return device.vendor_id != amd; }

bool runs(const TiledShape& shape, const Capabilities& device) {
  return shape.threads() >= device.min_subgroup_size && shape.threads() <= device.max_workgroup_invocations &&
         shape.threads() <= device.max_workgroup_size[0] && shape.shared_bytes() <= device.max_shared_bytes &&
         !crowds_gcn(shape, device);
}

// Where a multiply-add takes halves at no cost, two to a register as they lie: RDNA's v_fma_mix_f32, and any
// of Apple's instructions. Elsewhere each half is converted each time it is used, which costs more than the
// f32 tiles' traffic. Vega 20 has the instruction and Vega 10 has not, and Vulkan doesn't tell them apart.
// RDNA 3 issues two f32 multiply-adds at once, but no two mixed ones; it is told by its matrix units.
bool mixes_halves(const Capabilities& device) {
  const bool rdna = device.vendor_id == amd && device.min_subgroup_size == 32;
  const bool apple = device.driver_id == honeykrisp || device.driver_id == moltenvk;
  return device.supports(Need::fp16) && device.cooperative_shapes.empty() && (rdna || apple);
}

// What the shader's variants are called.
std::string variant_of(const LowerContext& context, DType out, bool mixed, bool sliced) {
  std::string variant = storage_variant(context.input(matmul_input::weight).dtype, out);
  if (mixed) variant = "mixed_" + variant;
  return with_patches(context, sliced ? std::move(variant) : with_turns(context, std::move(variant)));
}

// Those that fit, the best first.
std::vector<TiledShape> shapes_for(const LowerContext& context) {
  const bool mixed = mixes_halves(context.device()) && !refuse_mixed(context);
  std::vector<TiledShape> running, fitting;
  for (TiledShape shape : shapes) {
    if (crowds_rdna(shape, context.device())) shape.step_k /= 2;
    if (runs(shape, context.device())) running.push_back(shape);
  }
  // Columns that are staged on their way leave Intel's compiler an address more for each of their rows.
  const bool columns = is_x_transposed(context.node()) || is_weight_transposed(context.node());
  const uint32_t more = columns && context.device().subgroup_registers != 0 ? 12 : 0;
  const auto registers = [&](const TiledShape& shape) { return shape.registers() + more * shape.loads(); };
  for (TiledShape shape : within_registers(running, register_budget(context.device()), registers)) {
    shape.mixed = mixed;
    shape.one_way = stages_one_way(context.device());
    fitting.push_back(shape);
    shape.slices = best_slices(shape.worth(), matmul_sizes(context), context.device());
    if (shape.slices > 1) fitting.push_back(shape);
  }
  return ranked(fitting, context);
}

}  // namespace

TileWorth TiledShape::worth() const {
  // Instructions beside the products: a value of four read from shared memory; four rows of four that are
  // loaded, turned and written there, of which NVK and Honeykrisp make some 200 and RADV 30 (docs/zoo.md:
  // 16x32 and 64x128); the loop; and what goes before and behind it.
  constexpr double turned_block = 120, loop = 16, stored_sum = 3, beginning = 60;
  const auto blocks = static_cast<double>(loads());
  const double values = static_cast<double>(thread_m + thread_n) * step_k;
  // A software driver gains nothing from shared memory, only from few barriers a multiply-add: 32x32 was
  // measured twice as fast as the tiles above it.
  const double cpu_speed = threads() > 64 ? 0.25 : threads() > 32 ? 0.5 : 0.35;
  return {.tile_m = tile_m,
          .tile_n = tile_n,
          .slices = slices,
          .threads = threads(),
          .registers = static_cast<double>(registers()),
          .shared_bytes = static_cast<double>(shared_bytes()),
          .step_k = step_k,
          .shared_traffic = (mixed ? 2 : 4) * values * threads(),
          .instructions = threads() * (values / 4 + turned_block * blocks + loop),
          .instructions_once = threads() * (stored_sum * thread_m * thread_n + beginning),
          .ahead = ahead,
          .cpu_speed = cpu_speed};
}

std::string TiledShape::name() const {
  return std::to_string(tile_m) + "x" + std::to_string(tile_n) + "x" + std::to_string(step_k) + "/" +
         std::to_string(thread_m) + "x" + std::to_string(thread_n) +
         (ahead > 0 ? "/ahead" + std::to_string(ahead) : "") + (mixed ? "/mixed" : "") +
         (slices > 1 ? "/slices" + std::to_string(slices) : "");
}

std::span<const TiledShape> tiled_shapes() { return shapes; }

bool fits(const TiledShape& shape, const Capabilities& device) {
  return runs(shape, device) && shape.registers() <= register_budget(device);
}

std::optional<std::string> refuse_mixed(const LowerContext& context) {
  if (context.input(matmul_input::x).dtype != DType::f16)
    return "only f16 tiles can be kept as halves, x is f32";
  return context.missing("matmul_tiled", variant_of(context, context.output(0).dtype, true, false));
}

Lowered lower_tiled_as(const LowerContext& context, const TiledShape& shape) {
  const MatmulSizes sizes = matmul_sizes(context);
  const uint32_t k_multiple = sizes.k % shape.step_k == 0 ? shape.step_k : sizes.k % 4 == 0 ? 4 : 1;
  const KSlices slices = cut_k(sizes.k, shape.slices, shape.step_k);

  Dispatch dispatch;
  const DType stored = slices.count > 1 ? DType::f32 : context.output(0).dtype;
  dispatch.shader = &find_shader("matmul_tiled", variant_of(context, stored, shape.mixed, slices.count > 1));
  dispatch.constants = epilogue_constants(context);
  dispatch.add_constants({{"local_size", shape.threads()},
                          {"tile_m", shape.tile_m},
                          {"tile_n", shape.tile_n},
                          {"step_k", shape.step_k},
                          {"thread_m", shape.thread_m},
                          {"thread_n", shape.thread_n},
                          {"k_multiple", k_multiple},
                          {"aligned_n", sizes.n % 4 == 0},
                          {"ahead", shape.ahead},
                          {"transposed_a", is_x_transposed(context.node())},
                          {"transposed_w", is_weight_transposed(context.node())},
                          {"aligned_m", is_x_transposed(context.node()) && sizes.m % 4 == 0},
                          {"one_way", shape.one_way}});
  add_patch_constants(context, dispatch);
  dispatch.operands = matmul_operands(context);
  if (slices.count == 1) add_turns(context, dispatch);
  dispatch.note =
      std::to_string(shape.tile_m) + "x" + std::to_string(shape.tile_n) + (shape.mixed ? " mixed" : "");
  return lower_in_tiles(context, std::move(dispatch), shape.worth(), slices);
}

std::optional<std::string> refuse_tiled(const LowerContext& context) {
  const std::string variant = variant_of(context, context.output(0).dtype, false, false);
  if (auto reason = refuse(context, "matmul_tiled", variant)) return reason;
  if (auto reason = refuse_slices(context)) return reason;
  const auto running = [&](const TiledShape& shape) { return runs(shape, context.device()); };
  if (std::none_of(shapes.begin(), shapes.end(), running)) return "no tile fits the device's workgroups";
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
