// A direct product whose depth is cut into chunks, a dispatch each
// (shaders/products/cpu/matmul_cpu_chunk.comp).
#include "runtime/ops/lowering.h"
#include "runtime/ops/products/cpu/direct_product.h"
#include "shaders/products/cpu/matmul_cpu_chunk.h"

namespace vitrine {
namespace {

// A small product takes chunks that are shorter, and that other products may have as well.
constexpr uint64_t steps_of_small = 4;

// The numbers of workgroups that shaders/lib/known.glsl can look up in three and in four digits.
constexpr uint64_t most_panels = 1u << 12, most_blocks = 1u << 16;

}  // namespace

std::optional<std::string> refuse_chunked_product(const LowerContext& context, const DirectProduct& product) {
  if (auto reason = context.missing("matmul_cpu_chunk", name_of(product.weight))) return reason;
  if (auto reason = context.missing("matmul_cpu_chunk_end", name_of(product.out))) return reason;
  const uint32_t lanes = context.device().subgroup_size;
  if (ceil_div(product.columns, lanes) > most_panels) return "the weight has too many rows";
  const uint64_t blocks = ceil_div(product.rows, product.block_rows());
  if (blocks > most_blocks || blocks > context.device().max_workgroup_count[0]) return "x has too many rows";
  return std::nullopt;
}

void add_chunks(const LowerContext& context, const DirectProduct& product, Operand rows, Operand weight,
                Lowered& lowered) {
  const uint32_t lanes = context.device().subgroup_size, block = product.block_rows();
  const uint32_t blocks = to_u32(ceil_div(product.rows, block)),
                 panels = to_u32(ceil_div(product.columns, lanes));
  const Operand sums = Operand::scratch(to_u32(lowered.scratch.size()));
  lowered.scratch.push_back(uint64_t{blocks} * panels * block * lanes * sizeof(float));

  const bool small = is_small_product(product);
  uint64_t first = 0;
  for (const uint64_t length : chunk_steps) {
    if (small && length > steps_of_small) continue;
    for (; product.steps() - first >= length; first += length) {
      Dispatch& chunk = lowered.dispatches.emplace_back();
      chunk.shader = &find_shader("matmul_cpu_chunk", name_of(product.weight));
      chunk.constants = {{"local_size", lanes},     {"lanes", lanes},
                         {"block_rows", block},     {"unroll", product.unroll},
                         {"steps", to_u32(length)}, {"rows_by_depth", product.rows_by_depth}};
      chunk.subgroup_size = lanes;
      chunk.operands = {rows, weight, sums};
      chunk.set_params(shader::with_digits(shader::MatmulChunkParams{.blocks = blocks,
                                                                     .steps = to_u32(product.steps()),
                                                                     .first_step = to_u32(first),
                                                                     .go_on = first != 0}));
      chunk.groups = {blocks, panels, 1};
      chunk.note = std::to_string(block) + " rows a lane, depth " + std::to_string(first * product.unroll) +
                   " to " + std::to_string((first + length) * product.unroll);
    }
  }

  add_chunk_end(context, product, block, sums, lowered);
}

void add_chunk_end(const LowerContext& context, const DirectProduct& product, uint32_t block, Operand sums,
                   Lowered& lowered) {
  const uint32_t lanes = context.device().subgroup_size;
  const bool into_blocks = context.output_layout(0) != nullptr;
  const uint32_t blocks = to_u32(ceil_div(product.rows, block)),
                 panels = to_u32(ceil_div(product.columns, lanes));
  Dispatch& end = lowered.dispatches.emplace_back();
  end.shader = &find_shader("matmul_cpu_chunk_end", name_of(into_blocks ? DType::f32 : product.out));
  end.constants = product.epilogue;
  end.add_constants({{"local_size", lanes},
                     {"lanes", lanes},
                     {"block_rows", block},
                     {"unroll", product.unroll},
                     {"into_blocks", into_blocks},
                     {"halves", into_blocks && product.out == DType::f16}});
  end.subgroup_size = lanes;
  end.operands = {sums, product.extras[0], product.extras[1], product.extras[2], Operand::output(0)};
  end.set_params(shader::MatmulChunkEndParams{
      .rows = to_u32(product.rows), .columns = to_u32(product.columns), .blocks = blocks});
  end.groups = {blocks, panels, 1};
  end.note = into_blocks ? "into blocks" : "";
}

}  // namespace vitrine
