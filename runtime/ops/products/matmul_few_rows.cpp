// The kernel of matmul for a handful of rows (shaders/products/matmul_few_rows.comp).
#include "shaders/products/matmul_few_rows.h"

#include <bit>

#include "runtime/ops/lowering.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {
namespace {

// With more rows the left side is read from memory more often than the weights.
constexpr uint64_t most_rows = 8;
constexpr uint32_t threads = 64, lanes = 32;
// Of a group of lanes. Eight rows of four would need so much shared memory that GCN had two subgroups a SIMD.
uint32_t columns_for(uint32_t rows) { return rows > 4 ? 2 : 4; }

}  // namespace

std::optional<std::string> refuse_few_rows(const LowerContext& context) {
  if (auto reason = refuse_transposed(context)) return reason;
  if (auto reason = refuse(context, "matmul_few_rows", matmul_variant(context))) return reason;
  const uint64_t rows = matmul_sizes(context).m;
  if (rows > most_rows) {
    return std::to_string(rows) + " rows are more than the " + std::to_string(most_rows) + " it is made for";
  }
  return std::nullopt;
}

double prefer_few_rows(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 0.2 : 3;
}

Lowered lower_few_rows(const LowerContext& context) {
  const MatmulSizes sizes = matmul_sizes(context);
  const uint32_t rows = to_u32(std::bit_ceil(sizes.m));
  const uint32_t columns = columns_for(rows);
  const uint64_t run = 16 / size_of(context.input(matmul_input::x).dtype);

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("matmul_few_rows", matmul_variant(context));
  dispatch.constants = epilogue_constants(context);
  dispatch.add_constants({{"local_size", threads},
                          {"lanes", lanes},
                          {"rows", rows},
                          {"columns", columns},
                          {"depth", to_u32(sizes.k)},
                          {"whole_runs", sizes.k % run == 0}});
  dispatch.operands = matmul_operands(context);
  dispatch.set_params(shader::MatmulFewRowsParams{.m = to_u32(sizes.m), .n = to_u32(sizes.n)});
  dispatch.groups = spread_groups(context.device(), ceil_div(sizes.n, uint64_t{threads / lanes * columns}));
  dispatch.note = std::to_string(rows) + (rows == 1 ? " row" : " rows");
  lowered.in_place = matmul_in_place(context);
  return lowered;
}

}  // namespace vitrine
