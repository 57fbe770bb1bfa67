// The kernel of matmul for devices that are a CPU (shaders/matmul_direct.comp).
#include <algorithm>
#include <array>

#include "runtime/ops/convert.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/matmul_kernels.h"
#include "shaders/matmul_direct.h"

namespace vitrine {
namespace {

constexpr uint32_t panel = 64;  // columns of W that are packed together, and lanes of a workgroup

struct Block {
  uint32_t rows, group, unroll;
  double cost;  // of a row, where blocks are full: what reading W adds to the multiply-adds
};
// More rows share one read of W. Beyond fifty the accumulators no longer stay close to the core.
constexpr std::array<Block, 9> blocks{{
    {1, 1, 16, 4.0},
    {2, 2, 16, 2.4},
    {4, 4, 16, 1.7},
    {8, 8, 16, 1.35},
    {16, 16, 8, 1.15},
    {24, 12, 8, 1.08},
    {32, 16, 8, 1.05},
    {40, 20, 8, 1.0},
    {50, 10, 16, 1.0},
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
  Lowered lowered;

  Operand a = Operand::input(matmul_input::x);
  if (context.input(matmul_input::x).dtype == DType::f16) {
    // Every lane would convert the same value again for each of its columns.
    lowered.scratch.push_back(sizes.m * sizes.k * sizeof(float));
    a = Operand::scratch(0);
    for (Dispatch& step : lower_conversion(DType::f16, DType::f32, sizes.m * sizes.k, context.device()).dispatches) {
      for (Operand& operand : step.operands) {
        if (operand == Operand::output(0)) operand = Operand::scratch(0);
      }
      lowered.dispatches.push_back(std::move(step));
    }
  }

  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("matmul_direct", direct_variant(context));
  dispatch.constants = epilogue_constants(context);
  dispatch.constants.insert(dispatch.constants.end(),
                            {panel, block.rows, block.group, to_u32(sizes.k), block.unroll});
  dispatch.operands = matmul_operands(context);
  dispatch.operands[matmul_input::x] = a;
  dispatch.operands[matmul_input::weight] = Operand::packed(0);
  dispatch.set_params(shader::MatmulDirectParams{.rows = to_u32(sizes.m), .columns = to_u32(sizes.n)});
  dispatch.groups = {to_u32(ceil_div(sizes.m, block.rows)), to_u32(ceil_div(sizes.n, panel)), 1};
  dispatch.note = std::to_string(block.rows) + " rows a lane";

  const uint64_t count = round_up(sizes.n, panel) * sizes.k;
  Pack pack;
  pack.input = matmul_input::weight;
  pack.layout = "panels of " + std::to_string(panel) + " columns, f32";
  pack.bytes = count * sizeof(float);
  pack.dispatch.shader =
      &find_shader("matmul_direct_pack", std::string(name_of(context.input(matmul_input::weight).dtype)));
  const uint32_t threads = workgroup_size(context.device(), 64);
  pack.dispatch.constants = {threads, panel};
  pack.dispatch.operands = {Operand::input(matmul_input::weight), Operand::packed(0)};
  pack.dispatch.set_params(shader::MatmulDirectPackParams{
      .columns = to_u32(sizes.n), .depth = to_u32(sizes.k), .count = to_u32(count)});
  pack.dispatch.groups = {
      to_u32(std::min<uint64_t>(ceil_div(count, threads), context.device().max_workgroup_count[0])), 1, 1};
  lowered.packs.push_back(std::move(pack));

  // The last block of rows, and one step of K at the end of the last panel.
  lowered.overread_bytes = (block.rows * sizes.k + block.unroll * panel) * sizeof(float);
  lowered.in_place = matmul_in_place(context);
  return lowered;
}

}  // namespace vitrine
