// The matrix-unit kernel of matmul (shaders/matmul_coopmat.comp).
#include <algorithm>
#include <array>

#include "runtime/ops/lowering.h"
#include "runtime/ops/matmul_kernels.h"

namespace vitrine {
namespace {

// Accumulators of a workgroup: subgroups and matrices in each direction. Larger ones read shared memory less
// often for each product.
struct Arrangement {
  uint32_t subgroups_m, subgroups_n, matrices_m, matrices_n;
  double speed;
};
constexpr std::array<Arrangement, 4> arrangements{{
    {2, 2, 4, 4, 1.0},
    {2, 2, 4, 2, 0.85},
    {2, 2, 2, 2, 0.6},
    {1, 2, 1, 2, 0.3},
}};

// Registers of an invocation that accumulators may fill. With more, NVIDIA's and AMD's 256 run out.
constexpr uint32_t most_accumulators = 64;

// The largest matrix of f16 x f16 + f32 that the device lists; the first of equals, the driver's favourite.
std::optional<CooperativeShape> largest_matrix(const Capabilities& device) {
  std::optional<CooperativeShape> best;
  for (const CooperativeShape& shape : device.cooperative_shapes) {
    if (shape.a != "f16" || shape.b != "f16" || shape.c != "f32" || shape.result != "f32") continue;
    if (shape.k % 4 != 0) continue;  // a row of a step is read four values at a time
    if (!best || uint64_t{shape.m} * shape.n * shape.k > uint64_t{best->m} * best->n * best->k) best = shape;
  }
  return best;
}

}  // namespace

// Two products deep, and at least the 8 values that keep rows 16-byte aligned.
uint32_t CoopmatShape::step_k() const { return to_u32(round_up(2 * matrix.k, 8)); }

uint32_t CoopmatShape::shared_bytes() const {
  return 2 * (tile_m() + tile_n()) * (step_k() + 8) + 4 * subgroups_m * subgroups_n * matrix.m * matrix.n;
}

std::string CoopmatShape::name() const {
  const auto by = [](uint32_t rows, uint32_t columns) {
    return std::to_string(rows) + "x" + std::to_string(columns);
  };
  return by(subgroups_m, subgroups_n) + "/" + by(matrices_m, matrices_n) + "/" + by(matrix.m, matrix.n) +
         "x" + std::to_string(matrix.k);
}

std::vector<CoopmatShape> coopmat_shapes(const Capabilities& device) {
  const std::optional<CooperativeShape> matrix = largest_matrix(device);
  if (!matrix || device.subgroup_size == 0) return {};
  std::vector<CoopmatShape> shapes;
  for (const Arrangement& a : arrangements) {
    const CoopmatShape shape{*matrix,      device.subgroup_size, a.subgroups_m, a.subgroups_n,
                             a.matrices_m, a.matrices_n,         a.speed};
    const uint32_t accumulators = a.matrices_m * a.matrices_n * matrix->m * matrix->n / device.subgroup_size;
    if (accumulators <= most_accumulators && shape.threads() <= device.max_workgroup_invocations &&
        shape.threads() <= device.max_workgroup_size[0] && shape.shared_bytes() <= device.max_shared_bytes) {
      shapes.push_back(shape);
    }
  }
  return shapes;
}

Lowered lower_coopmat_as(const LowerContext& context, const CoopmatShape& shape) {
  const MatmulSizes sizes = matmul_sizes(context);
  const uint64_t tiles_m = ceil_div(sizes.m, shape.tile_m());
  const uint64_t tiles = tiles_m * ceil_div(sizes.n, shape.tile_n());
  const CooperativeShape& matrix = shape.matrix;

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("matmul_coopmat", matmul_variant(context));
  dispatch.constants = epilogue_constants(context);
  dispatch.constants.insert(
      dispatch.constants.end(),
      {shape.threads(), shape.subgroup_size, matrix.m, matrix.n, matrix.k, shape.subgroups_m,
       shape.subgroups_n, shape.matrices_m, shape.matrices_n, shape.step_k(), sizes.k % 4 == 0});
  dispatch.operands = matmul_operands(context);
  dispatch.set_params(shader::MatmulParams{.m = to_u32(sizes.m),
                                           .n = to_u32(sizes.n),
                                           .k = to_u32(sizes.k),
                                           .tiles_m = to_u32(tiles_m),
                                           .tiles = to_u32(tiles)});
  dispatch.groups = spread_groups(context.device(), tiles);
  dispatch.subgroup_size = shape.subgroup_size;
  dispatch.note = std::to_string(shape.tile_m()) + "x" + std::to_string(shape.tile_n()) + " of " +
                  std::to_string(matrix.m) + "x" + std::to_string(matrix.n) + "x" + std::to_string(matrix.k);
  lowered.in_place = matmul_in_place(context);
  return lowered;
}

std::optional<std::string> refuse_coopmat(const LowerContext& context) {
  if (context.input(matmul_input::x).dtype != DType::f16) return "matrix units multiply f16, x is f32";
  if (auto reason = refuse(context, "matmul_coopmat", matmul_variant(context))) return reason;
  if (!largest_matrix(context.device())) return "the device lists no matrix of f16 x f16 + f32";
  if (coopmat_shapes(context.device()).empty()) return "no tile of its matrices fits the device's workgroups";
  return std::nullopt;
}

// A software driver runs matrices for correctness only.
double prefer_coopmat(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 0.5 : 2;
}

Lowered lower_coopmat(const LowerContext& context) {
  return lower_coopmat_as(context, configured(context, ranked(coopmat_shapes(context.device()), context)));
}

std::vector<std::string> coopmat_configurations(const LowerContext& context) {
  return names_of(ranked(coopmat_shapes(context.device()), context));
}

}  // namespace vitrine
