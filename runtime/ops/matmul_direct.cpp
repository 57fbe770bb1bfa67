// The kernel of matmul for devices that are a CPU (shaders/matmul_direct.comp).
#include <algorithm>
#include <array>

#include "runtime/ops/lowering.h"
#include "runtime/ops/matmul_kernels.h"
#include "shaders/matmul_direct.h"

namespace vitrine {
namespace {

constexpr uint32_t panel = 16;  // columns of W that are packed together, and lanes of a workgroup

constexpr uint32_t unroll = 16;  // a cache line of A a row and step

struct Block {
  uint32_t rows, group;
  double cost;  // of a row, where blocks are full: what reading W adds to the multiply-adds
};
// More rows share one read of W. Beyond some fifty the accumulators no longer stay close to the core, and
// little is left to share.
constexpr std::array<Block, 10> blocks{{
    {1, 1, 4.0},
    {2, 2, 2.4},
    {4, 4, 1.7},
    {8, 8, 1.35},
    {16, 8, 1.15},
    {24, 12, 1.1},
    {32, 16, 1.05},
    {40, 10, 1.01},
    {50, 10, 1.0},
    {66, 11, 1.0},
}};

const Block& pick_block(uint64_t rows) {
  const auto time = [&](const Block& block) {
    return static_cast<double>(ceil_div(rows, block.rows) * block.rows) * block.cost;
  };
  return *std::min_element(blocks.begin(), blocks.end(),
                           [&](const Block& a, const Block& b) { return time(a) < time(b); });
}

std::string direct_variant(const LowerContext& context) { return std::string(name_of(context.output(0).dtype)); }

}  // namespace

std::optional<std::string> refuse_direct(const LowerContext& context) {
  if (!context.input_is_constant(matmul_input::weight)) return "the weight is computed, and can't be packed at load";
  if (auto reason = context.missing("matmul_direct", direct_variant(context))) return reason;
  const MatmulSizes sizes = matmul_sizes(context);
  const uint64_t largest = std::max({sizes.m * sizes.n, sizes.m * sizes.k, round_up(sizes.n, panel) * sizes.k});
  if (largest > UINT32_MAX / 4) return "a tensor is too large for 32-bit indices";
  if (ceil_div(sizes.n, panel) > context.device().max_workgroup_count[1]) return "the weight has too many rows";
  return std::nullopt;
}

// Without shared memory a GPU would read each operand from memory far too often.
double prefer_direct(const LowerContext& context) { return context.device().type == DeviceType::cpu ? 3 : -1; }

Lowered lower_direct(const LowerContext& context) {
  const MatmulSizes sizes = matmul_sizes(context);
  const Block& block = pick_block(sizes.m);
  const uint64_t steps = ceil_div(sizes.k, unroll);
  const uint32_t threads = workgroup_size(context.device(), 64);
  // One of the two packings: `rows` rows in groups of `together`.
  const auto packing = [&](std::string_view shader, DType dtype, uint64_t rows, uint32_t together, Operand from,
                           Operand to) {
    const uint64_t count = round_up(rows, together) * steps * unroll;
    Dispatch pack;
    pack.shader = &find_shader(shader, name_of(dtype));
    pack.constants = {threads, together, unroll};
    pack.operands = {from, to};
    pack.set_params(shader::MatmulDirectPackParams{.rows = to_u32(rows),
                                                   .depth = to_u32(sizes.k),
                                                   .steps = to_u32(steps),
                                                   .count = to_u32(count)});
    pack.groups = {to_u32(std::min<uint64_t>(ceil_div(count, threads), context.device().max_workgroup_count[0])), 1,
                   1};
    return std::pair(std::move(pack), count * sizeof(float));
  };

  Lowered lowered;
  auto [pack_rows, rows_bytes] = packing("matmul_direct_rows", context.input(matmul_input::x).dtype, sizes.m,
                                         block.rows, Operand::input(matmul_input::x), Operand::scratch(0));
  lowered.dispatches.push_back(std::move(pack_rows));
  lowered.scratch.push_back(rows_bytes);

  auto [pack_panels, panels_bytes] =
      packing("matmul_direct_panels", context.input(matmul_input::weight).dtype, sizes.n, panel,
              Operand::input(matmul_input::weight), Operand::packed(0));
  lowered.packs.push_back({matmul_input::weight,
                           "f32 panels of " + std::to_string(panel) + " columns, steps of " +
                               std::to_string(unroll),
                           panels_bytes, std::move(pack_panels)});

  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("matmul_direct", direct_variant(context));
  dispatch.constants = epilogue_constants(context);
  dispatch.constants.insert(dispatch.constants.end(),
                            {panel, block.rows, block.group, to_u32(steps), unroll});
  dispatch.operands = matmul_operands(context);
  dispatch.operands[matmul_input::x] = Operand::scratch(0);
  dispatch.operands[matmul_input::weight] = Operand::packed(0);
  dispatch.set_params(shader::MatmulDirectParams{.rows = to_u32(sizes.m), .columns = to_u32(sizes.n)});
  dispatch.groups = {to_u32(ceil_div(sizes.m, block.rows)), to_u32(ceil_div(sizes.n, panel)), 1};
  dispatch.note = std::to_string(block.rows) + " rows a lane";

  lowered.overread_bytes = std::max(block.rows, panel) * unroll * sizeof(float);
  lowered.in_place = matmul_in_place(context);
  return lowered;
}

}  // namespace vitrine
