// The kernel of matmul for small weights, on devices that are a CPU
// (shaders/products/cpu/matmul_cpu_small.comp).
#include "shaders/products/cpu/matmul_cpu_small.h"

#include "runtime/ops/lowering.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {
namespace {

// A row stays in registers, and its code is unrolled for eight columns.
constexpr uint64_t most_depth = 64, most_columns = 64;
// Without the loop over columns all of it is.
constexpr uint64_t most_straight = 1024;

}  // namespace

std::optional<std::string> refuse_small(const LowerContext& context) {
  if (context.input(matmul_input::x).dtype != DType::f32) return "x is f16, it only reads f32";
  if (is_x_transposed(context.node())) return "x is transposed";
  const MatmulSizes sizes = matmul_sizes(context);
  if (sizes.k > most_depth || sizes.n > most_columns) {
    return "a weight of " + std::to_string(sizes.n) + " x " + std::to_string(sizes.k) + " is larger than " +
           std::to_string(most_columns) + " x " + std::to_string(most_depth);
  }
  return refuse(context, "matmul_cpu_small", "f32");
}

double prefer_small(const LowerContext& context) {
  if (context.device().type != DeviceType::cpu) return -2;
  const MatmulSizes sizes = matmul_sizes(context);
  return context.device().loops_gather && sizes.k * sizes.n > most_straight ? 0.25 : 4;
}

Lowered lower_small(const LowerContext& context) {
  const MatmulSizes sizes = matmul_sizes(context);
  const uint32_t threads = row_lanes_workgroup_size(context.device(), sizes.m);
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("matmul_cpu_small", "f32");
  dispatch.constants = epilogue_constants(context);
  dispatch.add_constants({{"local_size", threads},
                          {"depth", to_u32(sizes.k)},
                          {"columns", to_u32(sizes.n)},
                          {"transposed_w", is_weight_transposed(context.node())},
                          {"straight", context.device().loops_gather && sizes.k * sizes.n <= most_straight}});
  dispatch.operands = matmul_operands(context);
  dispatch.set_params(shader::MatmulSmallParams{to_u32(sizes.m)});
  dispatch.groups = {to_u32(ceil_div(sizes.m, threads)), 1, 1};
  lowered.in_place = matmul_in_place(context);
  return lowered;
}

}  // namespace vitrine
