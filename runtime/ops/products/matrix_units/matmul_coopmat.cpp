// The staged matrix-unit kernels of matmul (shaders/products/matrix_units/matmul_coopmat.comp): matrices of a
// listed shape, and of a flexible one.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "runtime/ops/cost.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/products/matrix_units/matrix_units.h"

namespace vitrine {
namespace {

constexpr uint32_t nvidia = 0x10de;

// How a workgroup's tile is shared out: subgroups in each direction, and the outputs of each.
//
// A subgroup that makes r x c outputs reads r + c values of f16 from shared memory for r * c multiply-adds.
// NVIDIA's multiprocessors read 128 bytes a cycle and make 256 (GeForce) to 2048 (Hopper) multiply-adds of
// f16 with f32 sums in it: 64x64 (16 a byte) suffices for all, 32x32 (8 a byte) up to GA100's 1024.
struct Arrangement {
  uint32_t subgroups_m, subgroups_n, rows, columns;
  // More subgroups with less each, for devices with too few registers for the others.
  bool spares_registers = false;
  // For one buffer of whole lines: the largest tile whose steps fit 48 KiB.
  bool for_lines = false;
};
constexpr std::array<Arrangement, 19> arrangements{{
    {3, 4, 64, 32, false, true},
    {2, 4, 64, 64},
    {2, 2, 64, 64},
    {2, 4, 64, 32},
    {2, 2, 64, 32},
    {8, 4, 16, 32, true},
    {8, 8, 16, 16, true},
    {2, 4, 32, 32},
    {4, 4, 16, 32, true},
    {8, 4, 16, 16, true},
    {2, 2, 32, 32},
    {4, 2, 16, 32, true},
    {4, 4, 16, 16, true},
    {2, 2, 16, 32},
    {1, 2, 16, 32},
    {2, 2, 16, 16, true},
    {1, 2, 8, 16},
    {2, 2, 8, 16, true},
    {1, 4, 8, 8, true},
}};

// Registers that the accumulators of an invocation may fill: half of them. A software driver runs matrices
// for correctness only, and compiles each product and each call of an element's function on its own: small
// tiles spare it minutes.
double most_accumulators(const Capabilities& device, uint32_t subgroup_size, bool flexible) {
  if (device.type == DeviceType::cpu) return flexible ? 16 : 64;
  return registers_of_lane(device, subgroup_size) / 2;
}

// Registers of an invocation: the accumulators, a product's operands, what is staged and where it comes from.
// Where a subgroup's lanes share its registers, the compiler (Mesa's for Intel) loads all operands of a step
// early, and addresses are as long as what they load.
double registers_of(const CoopmatShape& shape, const Capabilities& device) {
  const CooperativeShape& matrix = shape.matrix;
  const bool early = device.subgroup_registers != 0;
  const uint32_t rows = shape.matrices_m * matrix.m, columns = shape.matrices_n * matrix.n;
  const uint32_t operands = early ? (rows + columns) * shape.step_k / 2 : (rows + matrix.n) * matrix.k / 2;
  const auto loads = [&](uint32_t lines) { return ceil_div(lines * shape.step_k / 8, shape.threads()); };
  // Eight values for each step that is on its way, and their address; where they are f32, columns have longer
  // ones.
  const double values = shape.rounded ? 8 : 4, longer = shape.rounded ? 6 : 4;
  const double each = values * shape.ahead + (early ? longer : 1);
  return static_cast<double>(rows * columns + operands) / shape.subgroup_size +
         each * static_cast<double>(loads(shape.tile_m()) + loads(shape.tile_n()));
}

// Steps that have to be on their way until memory has answered. A software driver waits for nothing; and
// Intel's compiler takes 18 to 56 registers of its 128 or 256 for each further step, which most tiles haven't
// got.
uint32_t steps_of_latency(const CoopmatShape& shape, const Capabilities& device) {
  constexpr uint32_t most = 3;  // of the shader
  if (device.type == DeviceType::cpu || device.subgroup_registers != 0) return 1;
  const DeviceRates rates = rates_of(device);
  const double step = static_cast<double>(shape.tile_m()) * shape.tile_n() * shape.step_k;
  return static_cast<uint32_t>(
      std::clamp(std::ceil(rates.memory_latency * rates.matrix_multiply_adds / step), 1.0, 1.0 * most));
}

// How far the steps go and whether they have two buffers. The first that fits is taken.
struct Staging {
  uint32_t step_k, buffers;
};
constexpr std::array<Staging, 4> stagings{{{32, 2}, {16, 2}, {32, 1}, {16, 1}}};

// NVIDIA's caches hand out lines of 128 bytes, which is a row of 64 halves: on an H100 steps of 32 took up to
// a quarter longer. Its driver lets workgroups share a unit as if that had the shared memory of one, so that
// two buffers took up to twice as long: a pause behind each step is the lesser evil (docs/benchmarks_gpu.md).
// What training rounds is f32, and reads lines in steps of 32.
constexpr std::array<Staging, 2> stagings_of_lines{{{64, 1}, {32, 1}}};

bool reads_lines(const Capabilities& device, bool rounded) { return device.vendor_id == nvidia && !rounded; }

bool fits(const CoopmatShape& shape, const Capabilities& device) {
  const bool flexible = shape.matrices_m * shape.matrices_n == 1;
  const uint32_t accumulators =
      shape.matrices_m * shape.matrices_n * shape.matrix.m * shape.matrix.n / shape.subgroup_size;
  const uint32_t subgroups = shape.subgroups_m * shape.subgroups_n;
  // How the driver holds a flexible matrix' operands is its own affair, and a CPU's memory is close.
  const bool counts = !flexible && device.type != DeviceType::cpu;
  const bool has_registers = accumulators <= most_accumulators(device, shape.subgroup_size, flexible) &&
                             (!counts || shape.registers <= register_budget(device, shape.subgroup_size));
  return has_registers && fills_subgroups(device, shape.threads()) &&
         shape.threads() <= device.max_workgroup_invocations &&
         shape.threads() <= device.max_workgroup_size[0] &&
         (device.max_workgroup_subgroups == 0 || subgroups <= device.max_workgroup_subgroups) &&
         shape.shared_bytes() <= shared_budget(device, subgroups);
}

// Those that spare registers are for devices that lack them.
bool is_offered(const Arrangement& a, const Capabilities& device, bool rounded) {
  return (!a.spares_registers || device.subgroup_registers != 0) &&
         (!a.for_lines || reads_lines(device, rounded));
}

// The first staging that fits.
bool stage(CoopmatShape& shape, const Capabilities& device) {
  const bool lines = reads_lines(device, shape.rounded);
  // All products of a step at once took more registers there, and up to a tenth longer.
  shape.rolled = lines;
  return std::ranges::any_of(lines ? std::span<const Staging>(stagings_of_lines) : stagings,
                             [&](const Staging& staging) {
                               shape.step_k = staging.step_k;
                               shape.buffers = staging.buffers;
                               shape.registers = registers_of(shape, device);
                               return shape.step_k % shape.matrix.k == 0 && fits(shape, device);
                             });
}

// The shape, and where its steps are shorter than memory takes the same with more of them on their way, as
// far as there are registers for them.
void add_with_loads_ahead(const CoopmatShape& shape, const Capabilities& device,
                          std::vector<CoopmatShape>& shapes) {
  shapes.push_back(shape);
  if (shape.buffers == 1) return;  // it lacks room already
  CoopmatShape further = shape;
  for (further.ahead = steps_of_latency(shape, device); further.ahead > 1; --further.ahead) {
    further.registers = registers_of(further, device);
    if (!fits(further, device)) continue;
    shapes.push_back(further);
    return;
  }
}

// Nothing when no staging of it fits the device.
std::optional<CoopmatShape> shape_of(const Arrangement& a, const CooperativeShape& matrix,
                                     uint32_t subgroup_size, double speed, const Capabilities& device,
                                     bool rounded) {
  if (a.rows % matrix.m != 0 || a.columns % matrix.n != 0) return std::nullopt;
  CoopmatShape shape{.matrix = matrix,
                     .subgroup_size = subgroup_size,
                     .subgroups_m = a.subgroups_m,
                     .subgroups_n = a.subgroups_n,
                     .matrices_m = a.rows / matrix.m,
                     .matrices_n = a.columns / matrix.n,
                     .speed = speed};
  shape.rounded = rounded;
  if (!stage(shape, device)) return std::nullopt;
  return shape;
}

// A subgroup's outputs as one matrix.
std::optional<CoopmatShape> flexible_shape_of(const Arrangement& a, const FlexibleShape& grain,
                                              uint32_t subgroup_size, const Capabilities& device,
                                              bool rounded) {
  // No more than 16 deep, or the fragments of A and W would take as many registers as the sums.
  const uint32_t depth = to_u32(round_up(16, grain.k));
  if (a.rows % grain.m != 0 || a.columns % grain.n != 0 || depth % 8 != 0) return std::nullopt;
  if (std::max({a.rows, a.columns, depth}) > device.flexible_max_dimension) return std::nullopt;
  CoopmatShape shape{.matrix = {a.rows, a.columns, depth, "f16", "f16", "f32", "f32"},
                     .subgroup_size = subgroup_size,
                     .subgroups_m = a.subgroups_m,
                     .subgroups_n = a.subgroups_n,
                     .matrices_m = 1,
                     .matrices_n = 1};
  shape.rounded = rounded;
  if (!stage(shape, device)) return std::nullopt;
  return shape;
}

enum class Dims : uint8_t { listed, flexible };

// What the shader's variant is called that stores C so.
std::string variant_of(const LowerContext& context, Dims dims, DType out, bool sliced = false) {
  const bool rounded = is_rounded(context.node());
  std::string variant = rounded ? "rounded" : storage_variant(context.input(matmul_input::weight).dtype, out);
  if (dims == Dims::flexible) variant += "_flexible";
  return with_patches(context, sliced ? std::move(variant) : with_turns(context, std::move(variant)));
}

// Whether a subgroup's lanes, four columns each, come out even in a strip's rows. Only where it was measured:
// what they read before they wait takes registers.
bool keeps_columns(const CoopmatShape& shape) {
  const uint32_t quads = shape.matrices_n * shape.matrix.n / 4;
  return shape.rolled && shape.subgroup_size % quads == 0 &&
         shape.matrix.m % (shape.subgroup_size / quads) == 0;
}

Lowered lower_staged(const LowerContext& context, const CoopmatShape& shape, Dims dims) {
  const MatmulSizes sizes = matmul_sizes(context);
  const CooperativeShape& matrix = shape.matrix;
  const bool by_eight = !shape.rounded && sizes.k % 8 == 0;
  const bool patches = reads_patches(context.node());
  const KSlices slices = cut_k(sizes.k, shape.slices, shape.step_k);
  const DType stored = slices.count > 1 ? DType::f32 : context.output(0).dtype;
  const std::string variant = variant_of(context, dims, stored, slices.count > 1);
  const std::vector<NamedConstant> epilogue = epilogue_constants(context);
  const bool plain = slices.count > 1 ||
                     std::ranges::all_of(epilogue, [](const NamedConstant& part) { return part.value == 0; });
  const bool rows_aligned = sizes.n * size_of(stored) % 16 == 0;
  const bool directly = plain && rows_aligned && stored == DType::f32;

  Dispatch dispatch;
  dispatch.shader = &find_shader("matmul_coopmat", variant);
  dispatch.constants = epilogue;
  dispatch.add_constants({{"local_size", shape.threads()},
                          {"subgroup_size", shape.subgroup_size},
                          {"matrix_m", matrix.m},
                          {"matrix_n", matrix.n},
                          {"matrix_k", matrix.k},
                          {"subgroups_m", shape.subgroups_m},
                          {"subgroups_n", shape.subgroups_n},
                          {"matrices_m", shape.matrices_m},
                          {"matrices_n", shape.matrices_n},
                          {"step_k", shape.step_k},
                          {"buffers", shape.buffers},
                          {"by_eight", by_eight},
                          {"by_four", sizes.n % 4 == 0},
                          {"store_directly", directly},
                          {"panel", tile_panel(shape.tile_m(), shape.tile_n(), context.device())},
                          {"sliced", slices.count > 1},
                          {"ahead", shape.ahead},
                          {"rolled", shape.rolled},
                          {"keep_columns", keeps_columns(shape) && sizes.n % 4 == 0}});
  add_patch_constants(context, dispatch);
  dispatch.operands = matmul_operands(context);
  // A and W are bound by eights or by single values; images always, and their W by eights or by fours. What
  // is rounded is read by fours where it lies row by row.
  const bool a_turned = is_x_transposed(context.node()), w_turned = is_weight_transposed(context.node());
  const bool a_whole = shape.rounded ? !a_turned && sizes.k % 4 == 0 : by_eight;
  const bool w_whole = shape.rounded ? !w_turned && sizes.k % 4 == 0 : by_eight;
  const Operand a = dispatch.operands[0], w = dispatch.operands[1];
  if (!w_whole) dispatch.operands[1] = Operand::nothing();
  if (!a_whole && !patches) dispatch.operands[0] = Operand::nothing();
  if (!patches) dispatch.operands.push_back(a_whole ? Operand::nothing() : a);
  dispatch.operands.push_back(w_whole ? Operand::nothing() : w);
  if (shape.rounded) {
    const bool scaled = context.has_input(matmul_input::magnitude);
    dispatch.add_constants({{"a_turned", a_turned},
                            {"w_turned", w_turned},
                            {"a_by_four", a_whole},
                            {"w_by_four", w_whole},
                            {"scaled", scaled}});
    dispatch.operands.push_back(scaled ? Operand::input(matmul_input::magnitude) : Operand::nothing());
  }
  if (slices.count == 1) add_turns(context, dispatch);
  dispatch.subgroup_size = shape.subgroup_size;
  dispatch.note = std::to_string(shape.tile_m()) + "x" + std::to_string(shape.tile_n()) + " of " +
                  std::to_string(matrix.m) + "x" + std::to_string(matrix.n) + "x" + std::to_string(matrix.k);
  return lower_in_tiles(context, std::move(dispatch), shape.worth(), slices);
}

std::vector<CoopmatShape> in_order(std::vector<CoopmatShape> shapes, const LowerContext& context) {
  for (size_t i = shapes.size(); i-- > 0;) {
    CoopmatShape sliced = shapes[i];
    sliced.slices = best_slices(sliced.worth(), matmul_sizes(context), context.device());
    if (sliced.slices > 1) shapes.push_back(sliced);
  }
  return ranked(shapes, context);
}

// The reason why a product's operands are none for these kernels.
std::optional<std::string> refuse_operands(const LowerContext& context) {
  if (auto reason = refuse_slices(context)) return reason;
  if (is_rounded(context.node())) return std::nullopt;
  if (auto reason = refuse_transposed(context)) return reason;
  if (reads_patches(context.node())) {
    if (context.input(matmul_input::weight).dtype != DType::f16)
      return "matrix units multiply f16, the weight is f32";
    const uint64_t k = matmul_sizes(context).k;
    if (k % 4 != 0) return "patches of " + std::to_string(k) + " elements can't be read by fours";
  } else if (context.input(matmul_input::x).dtype != DType::f16) {
    return "matrix units multiply f16, x is f32";
  }
  return std::nullopt;
}

}  // namespace

uint32_t CoopmatShape::shared_bytes() const {
  const uint32_t tiles = 2 * buffers * (tile_m() + tile_n()) * (step_k + 8);
  const uint32_t strips = 4 * subgroups_m * subgroups_n * matrix.m * (matrices_n * matrix.n + 4);
  return std::max(tiles, strips);
}

TileWorth CoopmatShape::worth() const {
  // Sixteen bytes of a row from memory to shared memory, sixteen of a fragment to registers, and a product.
  const double staged_load = rounded ? 24 : 12;
  // Both barriers, and the way through shared memory between them: on an H100, with a workgroup alone on its
  // unit.
  constexpr double one_buffer_pause = 360;
  // Registers for addresses and counters: NVIDIA's compiler takes 20 to 40 more than are counted.
  constexpr double uncounted = 20;
  constexpr double fragment_load = 2, product = 2, loop = 16, stored_sum = 3, beginning = 60;
  const double subgroups = subgroups_m * subgroups_n;
  const double staged = (tile_m() + tile_n()) * (step_k / 8.0);
  const double fragments = subgroups * (matrices_m * matrix.m + matrices_n * matrix.n) * step_k * 2;
  const double products = subgroups * matrices_m * matrices_n * (step_k / static_cast<double>(matrix.k));
  return {.tile_m = tile_m(),
          .tile_n = tile_n(),
          .slices = slices,
          .threads = threads(),
          .subgroup_size = subgroup_size,
          .registers = registers + (rolled ? uncounted : 0),
          .shared_bytes = static_cast<double>(shared_bytes()),
          .step_k = step_k,
          .shared_traffic = fragments,
          .instructions = staged * staged_load + fragments / 16 * fragment_load +
                          products * subgroup_size * product + threads() * loop,
          .instructions_once = stored_sum * tile_m() * tile_n() + beginning * threads(),
          .line_share = rolled && step_k < 64 ? 0.8 : 1.0,
          .pause = rolled ? one_buffer_pause : 0,
          .ahead = buffers > 1 || rolled ? ahead : 0,
          .matrix_units = true,
          .matrix_speed = speed};
}

std::string CoopmatShape::name() const {
  const auto by = [](uint32_t rows, uint32_t columns) {
    return std::to_string(rows) + "x" + std::to_string(columns);
  };
  return by(subgroups_m, subgroups_n) + "/" + by(matrices_m, matrices_n) + "/" + by(matrix.m, matrix.n) +
         "x" + std::to_string(matrix.k) + "/" + std::to_string(subgroup_size) +
         (ahead > 1 ? "/ahead" + std::to_string(ahead) : "") +
         (slices > 1 ? "/slices" + std::to_string(slices) : "");
}

std::vector<CoopmatShape> coopmat_shapes(const Capabilities& device, bool rounded) {
  std::vector<CoopmatShape> shapes;
  const std::vector<CooperativeShape> matrices = half_matrices(device);
  for (const uint32_t subgroup_size : matrix_subgroup_sizes(device)) {
    for (const CooperativeShape& matrix : matrices) {
      // The largest matrix comes first; a smaller one is more instructions for the same work, and the other
      // subgroup size is for tuning.
      const bool first = matrix == matrices.front() && subgroup_size == matrix_subgroup_sizes(device).front();
      for (const Arrangement& arrangement : arrangements) {
        if (!is_offered(arrangement, device, rounded)) continue;
        if (auto shape = shape_of(arrangement, matrix, subgroup_size, first ? 1.0 : 0.9, device, rounded)) {
          add_with_loads_ahead(*shape, device, shapes);
        }
      }
    }
  }
  return shapes;
}

Lowered lower_coopmat_as(const LowerContext& context, const CoopmatShape& shape) {
  return lower_staged(context, shape, Dims::listed);
}

std::optional<std::string> refuse_coopmat(const LowerContext& context) {
  if (auto reason = refuse_operands(context)) return reason;
  const std::string variant = variant_of(context, Dims::listed, context.output(0).dtype);
  if (auto reason = refuse(context, "matmul_coopmat", variant)) return reason;
  if (half_matrices(context.device()).empty()) return "the device lists no matrix of f16 x f16 + f32";
  if (coopmat_shapes(context.device(), is_rounded(context.node())).empty())
    return "no tile of its matrices fits the device's workgroups";
  return std::nullopt;
}

// A software driver runs matrices for correctness only.
double prefer_coopmat(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 0.5 : 2;
}

Lowered lower_coopmat(const LowerContext& context) {
  return lower_coopmat_as(
      context,
      configured(context, in_order(coopmat_shapes(context.device(), is_rounded(context.node())), context)));
}

std::vector<std::string> coopmat_configurations(const LowerContext& context) {
  return names_of(in_order(coopmat_shapes(context.device(), is_rounded(context.node())), context));
}

std::vector<CoopmatShape> coopmat_flexible_shapes(const Capabilities& device, bool rounded) {
  const std::vector<uint32_t> subgroup_sizes = matrix_subgroup_sizes(device);
  std::vector<CoopmatShape> shapes;
  if (subgroup_sizes.empty()) return shapes;
  for (const FlexibleShape& grain : half_grains(device, 0)) {
    for (const Arrangement& arrangement : arrangements) {
      if (!is_offered(arrangement, device, rounded)) continue;
      if (auto shape = flexible_shape_of(arrangement, grain, subgroup_sizes.front(), device, rounded)) {
        add_with_loads_ahead(*shape, device, shapes);
      }
    }
  }
  return shapes;
}

Lowered lower_coopmat_flexible_as(const LowerContext& context, const CoopmatShape& shape) {
  return lower_staged(context, shape, Dims::flexible);
}

std::optional<std::string> refuse_coopmat_flexible(const LowerContext& context) {
  if (auto reason = refuse_operands(context)) return reason;
  const std::string variant = variant_of(context, Dims::flexible, context.output(0).dtype);
  if (auto reason = refuse(context, "matmul_coopmat", variant)) return reason;
  if (half_grains(context.device(), 0).empty()) {
    return "the device lists no flexible matrix of f16 x f16 + f32 for a subgroup";
  }
  if (coopmat_flexible_shapes(context.device(), is_rounded(context.node())).empty()) {
    return "no tile of flexible matrices fits the device's workgroups";
  }
  return std::nullopt;
}

// Behind the listed shapes, which the driver's hardware has: nobody has measured a GPU's flexible ones here.
double prefer_coopmat_flexible(const LowerContext& context) { return prefer_coopmat(context) - 0.1; }

Lowered lower_coopmat_flexible(const LowerContext& context) {
  return lower_coopmat_flexible_as(
      context,
      configured(context,
                 in_order(coopmat_flexible_shapes(context.device(), is_rounded(context.node())), context)));
}

std::vector<std::string> coopmat_flexible_configurations(const LowerContext& context) {
  return names_of(in_order(coopmat_flexible_shapes(context.device(), is_rounded(context.node())), context));
}

}  // namespace vitrine
