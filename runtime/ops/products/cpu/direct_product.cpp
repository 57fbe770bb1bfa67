#include "runtime/ops/products/cpu/direct_product.h"

#include <algorithm>

#include "runtime/ops/lowering.h"
#include "runtime/ops/products/matmul_kernels.h"
#include "runtime/ops/row_blocks.h"
#include "shaders/products/cpu/matmul_cpu_direct.h"

namespace vitrine {
namespace {

// Every lane reads the whole row of a panel; with wider subgroups than a CPU's, that would be most of the
// work.
constexpr uint32_t most_lanes = 16;

// Where the depth lies outermost and there are few outputs, their sums are cut into slices, so that all cores
// have work and no sum gets as long as a batch has rows.
constexpr uint64_t wanted_groups = 32, shortest_slice = 8;  // steps

struct Block {
  uint32_t rows, group;
  double cost;  // of a row, where blocks are full: what reading W adds to the multiply-adds
  std::string name() const { return std::to_string(rows) + "x" + std::to_string(group); }
};
// More rows share one read of W, and make more code to compile: beyond some thirty nothing is gained.
constexpr std::array<Block, 10> blocks{{
    {1, 1, 4.0},
    {2, 2, 2.4},
    {4, 4, 1.7},
    {8, 8, 1.35},
    {11, 11, 1.25},
    {16, 8, 1.15},
    {20, 10, 1.05},
    {22, 11, 1.03},
    {26, 13, 1.02},
    {33, 11, 1.0},
}};

// In chunks all sums of a block stay in registers; each further size of block is one more shader to compile.
constexpr std::array<Block, 2> chunk_blocks{{{4, 4, 1.6}, {12, 12, 1.0}}};

// The best first.
std::vector<Block> blocks_for(const DirectProduct& product) {
  std::vector<Block> order(blocks.begin(), blocks.end());
  if (product.in_chunks) order.assign(chunk_blocks.begin(), chunk_blocks.end());
  const uint64_t rows = product.rows;
  std::ranges::stable_sort(order, {}, [&](const Block& block) {
    return static_cast<double>(ceil_div(rows, block.rows) * block.rows) * block.cost;
  });
  return order;
}

Block block_of(const DirectProduct& product) {
  const std::vector<Block> order = blocks_for(product);
  const auto named = std::ranges::find(order, product.configuration, &Block::name);
  return named == order.end() ? order.front() : *named;
}

// Columns of W that are packed together: as many as a subgroup has lanes.
uint32_t panel_columns(const Capabilities& device) { return device.subgroup_size; }

Pack pack_panels(const LowerContext& context, const DirectProduct& product) {
  const uint32_t panel = panel_columns(context.device());
  constexpr uint32_t group_steps = 8;
  Pack pack;
  pack.input = product.weight_input;
  pack.layout = "panels of " + std::to_string(panel) + " columns, steps of " + std::to_string(product.unroll);
  pack.bytes = round_up(product.columns, panel) * product.steps() * product.unroll * size_of(product.weight);
  pack.dispatch.shader = &find_shader("matmul_cpu_direct_panels", name_of(product.weight));
  pack.dispatch.constants = {{"local_size", panel},
                             {"panel", panel},
                             {"unroll", product.unroll},
                             {"whole_steps", product.depth % product.unroll == 0}};
  pack.dispatch.operands = {Operand::input(product.weight_input), Operand::packed(0)};
  pack.dispatch.set_params(shader::MatmulDirectPanelsParams{.columns = to_u32(product.columns),
                                                            .depth = to_u32(product.depth),
                                                            .steps = to_u32(product.steps()),
                                                            .group_steps = group_steps});
  pack.dispatch.groups = {to_u32(ceil_div(product.steps(), group_steps)),
                          to_u32(ceil_div(product.columns, panel)), 1};
  return pack;
}

// An operand that lies with the depth outermost is worth cutting into strips where its rows are so long that
// each step comes from a page of its own, and enough blocks of the other operand read it.
bool is_worth_strips(uint64_t width, uint64_t readers) { return width > 64 && readers >= 4; }

Operand cut_into_strips(const LowerContext& context, const DirectProduct& product, uint32_t input,
                        uint64_t columns, uint32_t width, Lowered& lowered) {
  const uint64_t across = ceil_div(columns, width), padded = product.steps() * product.unroll;
  const Operand strips = Operand::scratch(to_u32(lowered.scratch.size()));
  lowered.scratch.push_back(across * padded * width * sizeof(float));
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("matmul_cpu_direct_strips", "f32");
  dispatch.constants = {{"local_size", workgroup_size(context.device(), 64)}, {"width", width}};
  dispatch.operands = {Operand::input(input), strips};
  const uint64_t written = across * (product.in_chunks ? padded : product.depth);
  dispatch.set_params(shader::MatmulDirectStripsParams{.columns = to_u32(columns),
                                                       .depth = to_u32(product.depth),
                                                       .padded = to_u32(padded),
                                                       .count = to_u32(written)});
  dispatch.groups = striding_groups(context.device(), written, dispatch.constant("local_size"));
  dispatch.note = "strips of " + std::to_string(width);
  return strips;
}

bool is_by_depth(const DirectProduct& product) { return product.rows_by_depth || product.weight_by_depth; }

bool rows_in_strips(const DirectProduct& product, const Capabilities& device) {
  return product.in_chunks || is_worth_strips(product.rows, ceil_div(product.columns, panel_columns(device)));
}
bool weight_in_strips(const DirectProduct& product) {
  return product.in_chunks || is_worth_strips(product.columns, ceil_div(product.rows, product.block_rows()));
}

// How matmul_cpu_direct_columns.comp walks through the operands, each in place, in strips or packed.
shader::MatmulDirectColumnsParams columns_params(const LowerContext& context, const DirectProduct& product,
                                                 uint64_t slice_steps) {
  const uint32_t panel = panel_columns(context.device()), block = product.block_rows();
  const uint64_t padded = product.steps() * product.unroll;
  const bool rows_lie = product.rows_by_depth && !rows_in_strips(product, context.device());
  const bool weight_lies = product.weight_by_depth && !weight_in_strips(product);
  return {.rows = to_u32(product.rows),
          .columns = to_u32(product.columns),
          .depth = to_u32(product.depth),
          .slice_steps = to_u32(slice_steps),
          .row_stride = rows_lie ? to_u32(product.rows) : block,
          .row_block = rows_lie ? block : to_u32(block * padded),
          .weight_stride = weight_lies ? to_u32(product.columns) : panel,
          .weight_block = weight_lies ? panel : to_u32(panel * padded)};
}

}  // namespace

Operand weight_of(const LowerContext& context, const DirectProduct& product, Lowered& lowered) {
  if (product.weight_by_depth) {
    const uint32_t panel = panel_columns(context.device());
    if (!weight_in_strips(product)) return Operand::input(product.weight_input);
    return cut_into_strips(context, product, product.weight_input, product.columns, panel, lowered);
  }
  Pack panels = pack_panels(context, product);
  if (context.input_is_constant(product.weight_input)) {
    lowered.packs.push_back(std::move(panels));
    return Operand::packed(0);
  }
  const Operand weight = Operand::scratch(to_u32(lowered.scratch.size()));
  lowered.scratch.push_back(panels.bytes);
  panels.dispatch.operands.back() = weight;
  lowered.dispatches.push_back(std::move(panels.dispatch));
  return weight;
}

uint32_t DirectProduct::block_rows() const { return block_of(*this).rows; }

std::vector<std::string> direct_product_configurations(const DirectProduct& product) {
  return names_of(blocks_for(product));
}

std::optional<std::string> refuse_direct_product(const LowerContext& context, const DirectProduct& product) {
  if (is_by_depth(product)) {
    if (product.weight != DType::f32 || product.out != DType::f32)
      return "an operand is transposed, and not f32";
    if (auto reason = context.missing("matmul_cpu_direct_columns", "f32")) return reason;
    if (auto reason = context.missing("matmul_cpu_direct_strips", "f32")) return reason;
  }
  if (product.in_chunks) {
    if (auto reason = refuse_chunked_product(context, product)) return reason;
  } else if (context.device().loops_gather) {
    return "the device's loops load for each lane, 'cpu_chunks' has none";
  } else if (auto reason =
                 context.missing("matmul_cpu_direct", storage_variant(product.weight, product.out))) {
    return reason;
  }
  if (auto reason = context.missing("matmul_cpu_direct_panels", name_of(product.weight))) return reason;
  const uint32_t panel = panel_columns(context.device());
  if (panel == 0 || panel > most_lanes)
    return "subgroups of " + std::to_string(panel) + " lanes are too wide";
  const uint64_t largest = std::max({product.rows * product.columns, product.packed_elements(),
                                     round_up(product.columns, panel) * product.steps() * product.unroll});
  if (largest > UINT32_MAX / 4) return "a tensor is too large for 32-bit indices";
  if (ceil_div(product.columns, panel) > context.device().max_workgroup_count[1])
    return "the weight has too many rows";
  return std::nullopt;
}

std::optional<Layout> liked_layout(const DirectProduct& product) {
  if (product.rows_by_depth || product.depth % product.unroll != 0) return std::nullopt;
  return RowBlocks{.rows = product.rows,
                   .depth = product.depth,
                   .block_rows = product.block_rows(),
                   .unroll = product.unroll}
      .layout();
}

bool can_write(const DirectProduct& product, const Layout& layout) {
  const RowBlocks own{.rows = product.rows,
                      .depth = product.columns,
                      .block_rows = product.block_rows(),
                      .unroll = product.unroll};
  return !is_by_depth(product) && layout == own.layout();
}

void add_direct_product(const LowerContext& context, const DirectProduct& product, Dispatch pack_rows,
                        Lowered& lowered) {
  lowered.scratch.push_back(product.packed_elements() * sizeof(float));
  lowered.dispatches.push_back(std::move(pack_rows));
  add_packed_product(context, product, Operand::scratch(0), lowered);
}

void add_packed_product(const LowerContext& context, const DirectProduct& product, Operand rows,
                        Lowered& lowered) {
  if (product.in_chunks) {
    add_chunks(context, product, rows, weight_of(context, product, lowered), lowered);
    return;
  }
  const Block block = block_of(product);
  const bool into_blocks = context.output_layout(0) != nullptr;
  const DType out = into_blocks ? DType::f32 : product.out;
  const Operand weight = weight_of(context, product, lowered);
  const uint32_t panel = panel_columns(context.device());

  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.constants = product.epilogue;
  dispatch.add_constants({{"local_size", panel},
                          {"block_rows", block.rows},
                          {"group_rows", block.group},
                          {"unroll", product.unroll},
                          {"lanes", panel}});
  dispatch.subgroup_size = panel;
  dispatch.operands = {
      rows, weight, product.extras[0], product.extras[1], product.extras[2], Operand::output(0)};
  dispatch.set_params(shader::MatmulDirectParams{
      .rows = to_u32(product.rows), .columns = to_u32(product.columns), .steps = to_u32(product.steps())});
  dispatch.groups = {to_u32(ceil_div(product.rows, block.rows)), to_u32(ceil_div(product.columns, panel)), 1};
  dispatch.note = std::to_string(block.rows) + " rows a lane" + (into_blocks ? ", into blocks" : "");
  if (!is_by_depth(product)) {
    dispatch.shader = &find_shader("matmul_cpu_direct", storage_variant(product.weight, out));
    dispatch.add_constants(
        {{"into_blocks", into_blocks}, {"halves", into_blocks && product.out == DType::f16}});
    return;
  }
  dispatch.shader = &find_shader("matmul_cpu_direct_columns", "f32");
  dispatch.add_constants(
      {{"rows_in_blocks", !product.rows_by_depth},
       {"rows_in_strips", product.rows_by_depth && rows_in_strips(product, context.device())},
       {"weight_in_strips", !product.weight_by_depth || weight_in_strips(product)}});
  dispatch.set_params(columns_params(context, product, product.depth / product.unroll));
  // Of a block of rows, or of columns, that ends behind the last one.
  lowered.overread_bytes = std::max(block.rows, panel) * sizeof(float);
}

void add_product_by_depth(const LowerContext& context, const DirectProduct& product, Lowered& lowered) {
  Operand rows = Operand::input(matmul_input::x);
  if (rows_in_strips(product, context.device())) {
    rows = cut_into_strips(context, product, matmul_input::x, product.rows, product.block_rows(), lowered);
  }
  add_packed_product(context, product, rows, lowered);
  if (product.in_chunks) return;
  const Dispatch whole = lowered.dispatches.back();
  const uint64_t steps = product.depth / product.unroll;
  const uint64_t groups = uint64_t{whole.groups[0]} * whole.groups[1];
  const uint64_t wanted = std::min(ceil_div(wanted_groups, groups), steps / shortest_slice);
  if (wanted < 2) return;
  const uint64_t slice_steps = ceil_div(steps, wanted);
  const auto slices = to_u32(ceil_div(steps, slice_steps));
  lowered.dispatches.pop_back();
  Dispatch sliced = whole;
  sliced.set_params(columns_params(context, product, slice_steps));
  sliced.groups[2] = slices;
  sum_slices(context, std::move(sliced), {slices, slice_steps * product.unroll}, lowered);
}

double prefer_direct_product(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 3 : -1;
}

double prefer_chunked_product(const LowerContext& context) {
  return context.device().type == DeviceType::cpu && context.device().loops_gather ? 3 : -2;
}

}  // namespace vitrine
