// The second half of a product whose K is cut into slices (shaders/products/matmul_slices.comp).
#include "shaders/products/matmul_slices.h"

#include <algorithm>

#include "runtime/ops/lowering.h"
#include "runtime/ops/products/matmul_kernels.h"

namespace vitrine {

KSlices cut_k(uint64_t k, uint32_t wanted, uint32_t step_k) {
  const uint64_t length = round_up(ceil_div(k, wanted), step_k);
  return {to_u32(ceil_div(k, length)), length};
}

std::optional<std::string> refuse_slices(const LowerContext& context) {
  return context.missing("matmul_slices", with_turns(context, std::string(name_of(context.output(0).dtype))));
}

void sum_slices(const LowerContext& context, Dispatch product, const KSlices& slices, Lowered& lowered) {
  const std::vector<NamedConstant> epilogue = epilogue_constants(context);
  for (const NamedConstant& part : epilogue) product.constant(part.name) = 0;
  const Operand partial = Operand::scratch(to_u32(lowered.scratch.size()));
  for (Operand& operand : product.operands) {
    if (operand == Operand::output(0)) operand = partial;
    if (operand.kind == Operand::Kind::input && operand.index >= matmul_input::bias &&
        operand.index <= matmul_input::residual)
      operand = Operand::nothing();
  }
  product.note += " in " + std::to_string(slices.count) + " slices";
  lowered.dispatches.push_back(std::move(product));

  const uint64_t elements = context.output(0).shape.elements();
  lowered.scratch.push_back(4 * elements * slices.count);
  const std::vector<Operand> operands = matmul_operands(context);
  Dispatch& sum = lowered.dispatches.emplace_back();
  sum.shader =
      &find_shader("matmul_slices", with_turns(context, std::string(name_of(context.output(0).dtype))));
  sum.constants = epilogue;
  const uint64_t n = matmul_sizes(context).n, each = n % 4 == 0 ? 4 : 1;
  sum.add_constants({{"local_size", workgroup_size(context.device(), 128)},
                     {"n", to_u32(n)},
                     {"slices", slices.count},
                     {"by_four", each == 4}});
  sum.operands = {partial, operands[matmul_input::bias], operands[matmul_input::scale],
                  operands[matmul_input::residual], Operand::output(0)};
  add_turns(context, sum);
  sum.set_params(shader::MatmulSlicesParams{to_u32(elements)});
  sum.groups = spread_groups(context.device(), ceil_div(elements, each * sum.constant("local_size")));
  sum.note = std::to_string(slices.count) + " slices";
}

Lowered lower_in_tiles(const LowerContext& context, Dispatch product, const TileWorth& tile,
                       const KSlices& slices) {
  const MatmulSizes sizes = matmul_sizes(context);
  const uint64_t tiles_m = ceil_div(sizes.m, tile.tile_m);
  const uint64_t tiles = tiles_m * ceil_div(sizes.n, tile.tile_n);
  product.set_params(shader::MatmulParams{.m = to_u32(sizes.m),
                                          .n = to_u32(sizes.n),
                                          .k = to_u32(sizes.k),
                                          .tiles_m = to_u32(tiles_m),
                                          .tiles = to_u32(tiles),
                                          .slices = slices.count,
                                          .slice_k = to_u32(slices.length)});
  product.groups = spread_groups(context.device(), tiles * slices.count);
  TileWorth cut = tile;
  cut.slices = slices.count;
  product.work = work_of(cut, sizes);

  Lowered lowered;
  lowered.in_place = matmul_in_place(context);
  if (slices.count == 1) {
    lowered.dispatches.push_back(std::move(product));
  } else {
    sum_slices(context, std::move(product), slices, lowered);
    lowered.dispatches.back().work = work_of_sum(cut, sizes);
  }
  return lowered;
}

}  // namespace vitrine
