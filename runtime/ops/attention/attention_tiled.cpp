// The shared-memory kernel of attention (shaders/attention/attention_tiled.comp).
#include <algorithm>
#include <array>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/cost.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"

namespace vitrine {
namespace {

constexpr uint64_t widest = 256;

// Each shares out the work as matmul's tiles do: the more rows and columns an invocation has, the more
// products a value serves that was read from shared memory. Narrow columns waste less on odd widths and hold
// wider heads in as many registers; the last ones are for few queries, and for 16 KiB, the least that Vulkan
// promises.
constexpr std::array<AttentionTile, 8> tiles{{
    {.threads = 256,
     .columns = 16,
     .block_q = 64,
     .block_k = 64,
     .chunk4 = 4,
     .slice = 16,
     .cpu_speed = 0.49},
    {.threads = 256, .columns = 8, .block_q = 64, .block_k = 64, .chunk4 = 4, .slice = 8, .cpu_speed = 0.47},
    {.threads = 128,
     .columns = 16,
     .block_q = 32,
     .block_k = 64,
     .chunk4 = 2,
     .slice = 16,
     .cpu_speed = 0.45},
    {.threads = 128, .columns = 8, .block_q = 32, .block_k = 32, .chunk4 = 4, .slice = 8, .cpu_speed = 0.48},
    {.threads = 64, .columns = 8, .block_q = 32, .block_k = 32, .chunk4 = 2, .slice = 8, .cpu_speed = 0.37},
    {.threads = 64, .columns = 8, .block_q = 16, .block_k = 32, .chunk4 = 2, .slice = 8, .cpu_speed = 0.42},
    {.threads = 128, .columns = 16, .block_q = 8, .block_k = 64, .chunk4 = 2, .slice = 16, .cpu_speed = 0.23},
    {.threads = 32, .columns = 8, .block_q = 4, .block_k = 16, .chunk4 = 2, .slice = 8, .cpu_speed = 0.15},
}};

uint32_t vec4s(uint64_t width) { return to_u32(ceil_div(width, 4)); }
uint32_t odd(uint32_t value) { return value | 1; }

// Registers of an invocation: scores, sums of values and a step's operands, about as RADV makes of them
// (docs/zoo.md): 1.4 of each and 20 more.
double registers(const AttentionTile& tile, const AttentionSizes& sizes) {
  const uint32_t value_j = to_u32(ceil_div(vec4s(sizes.value_width), tile.columns));
  return 20 + 1.4 * tile.score_i() * (tile.score_j() + 4 * value_j + 4);
}

}  // namespace

Work work_of(const AttentionTile& tile, const AttentionSizes& sizes, uint64_t shared, double registers) {
  constexpr double exponential = 16;  // four multiply-adds' time on AMD and NVIDIA, and what is around it
  constexpr double staged = 16;       // a vec4 from memory to shared memory
  constexpr double block_loop = 64, chunk_loop = 16;
  const double i = tile.score_i(), j = tile.score_j();
  const auto value_j = static_cast<double>(ceil_div(vec4s(sizes.value_width), tile.columns));
  const auto chunks = static_cast<double>(ceil_div(vec4s(sizes.key_width), tile.chunk4));
  const auto blocks = static_cast<double>(ceil_div(sizes.keys, tile.block_k));
  const auto slices = static_cast<double>(ceil_div(sizes.keys, tile.slice));
  // Of an invocation: multiply-adds, and vec4 that it reads from shared memory.
  const double scores = blocks * chunks * tile.chunk4 * 4 * i * j;
  const double values = slices * tile.slice * 4 * i * value_j;
  const double reads = blocks * (chunks * tile.chunk4 * (i + j) + i * tile.columns / 4) +
                       slices * tile.slice / 4 * (i + 4 * value_j);
  const double loads = blocks * chunks * (tile.block_q + tile.block_k) * tile.chunk4 +
                       slices * tile.slice * vec4s(sizes.value_width);  // of all invocations
  const double statistics =
      blocks * (i * (j * exponential + 2 * tile.columns) + block_loop + chunks * chunk_loop) +
      slices * chunk_loop;
  Work work;
  work.groups = static_cast<double>(ceil_div(sizes.queries, tile.block_q) * sizes.heads * sizes.batch);
  work.threads = tile.threads;
  work.registers = registers;
  work.shared_bytes = static_cast<double>(shared);
  work.multiply_adds = tile.threads * (scores + values);
  work.instructions = tile.threads * (statistics + reads) + staged * loads;
  work.shared_traffic = tile.threads * 16 * reads;
  work.moved = sizes.moved_bytes(tile.block_q);
  work.rounds = blocks * chunks + slices;
  work.cpu_speed = tile.cpu_speed;
  work.resident_bytes = sizes.tensor_bytes();
  return work;
}

namespace {

// True when every row of every head begins at a multiple of four elements and is made of whole fours.
bool aligned(const shader::AttentionParams& p) {
  return (p.key_width | p.value_width | p.q_stride | p.k_stride | p.v_stride | p.q_offset | p.k_offset |
          p.v_offset) %
             4 ==
         0;
}

bool runs(const AttentionTile& tile, const AttentionSizes& sizes, const Capabilities& device) {
  return tile.threads <= device.max_workgroup_invocations && tile.threads <= device.max_workgroup_size[0] &&
         shared_bytes(tile, sizes) <= device.max_shared_bytes;
}

// Those that fit, the best first.
std::vector<AttentionTile> tiles_for(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  std::vector<AttentionTile> fitting;
  for (const AttentionTile& tile : tiles) {
    if (runs(tile, sizes, context.device())) fitting.push_back(tile);
  }
  fitting = within_registers(fitting, register_budget(context.device()),
                             [&](const AttentionTile& tile) { return registers(tile, sizes); });
  const auto work = [&](const AttentionTile& tile) {
    return work_of(tile, sizes, shared_bytes(tile, sizes), registers(tile, sizes));
  };
  std::vector<AttentionTile> ordered = fastest_first(fitting, context.device(), work);
  // All its loads are waited for. So those come last of which about three subgroups fit a scheduler, or
  // fewer.
  std::ranges::stable_partition(ordered, [&](const AttentionTile& tile) {
    const double held = estimate(work(tile), context.device()).subgroups;
    return held == 0 || held >= 3.5;
  });
  return ordered;
}

}  // namespace

std::string AttentionTile::name() const {
  return std::to_string(block_q) + "x" + std::to_string(block_k) + "/" + std::to_string(rows()) + "x" +
         std::to_string(columns);
}

std::span<const AttentionTile> attention_tiles() { return tiles; }

uint64_t shared_bytes(const AttentionTile& tile, const AttentionSizes& sizes) {
  const uint64_t chunk = uint64_t{tile.block_q + tile.block_k} * odd(tile.chunk4);
  const uint64_t slice = uint64_t{tile.slice} * odd(vec4s(sizes.value_width));
  return 16 * std::max(chunk, slice) + 4ull * tile.block_q * (tile.slice + 4);
}

bool fits(const AttentionTile& tile, const AttentionSizes& sizes, const Capabilities& device) {
  return runs(tile, sizes, device) && registers(tile, sizes) <= register_budget(device);
}

Lowered lower_attention_tiled_as(const LowerContext& context, const AttentionTile& tile) {
  const AttentionSizes sizes = attention_sizes(context);
  const uint64_t blocks = ceil_div(sizes.queries, tile.block_q) * sizes.heads * sizes.batch;
  const shader::AttentionParams params = attention_params(context, blocks);
  const bool store_lse = context.attributes().flag("store_lse");
  const bool drops = drops_weights(context.attributes());

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("attention_tiled", name_of(context.input(attention_input::q).dtype));
  dispatch.constants = {{"local_size", tile.threads},
                        {"threads", tile.threads},
                        {"block_q", tile.block_q},
                        {"block_k", tile.block_k},
                        {"key_width", params.key_width},
                        {"value_width", params.value_width},
                        {"columns", tile.columns},
                        {"chunk4", tile.chunk4},
                        {"slice", tile.slice},
                        {"aligned", aligned(params)},
                        {"store_lse", store_lse},
                        {"drop", drops},
                        {"causal", is_attention_causal(context.attributes())}};
  add_relative_bias(context, dispatch);
  dispatch.operands = {Operand::input(attention_input::q),
                       Operand::input(attention_input::k),
                       Operand::input(attention_input::v),
                       Operand::output(0),
                       store_lse ? Operand::output(1) : Operand::nothing(),
                       drops ? Operand::input(attention_input::step) : Operand::nothing(),
                       relative_bias_operand(context, attention_input::bias)};
  dispatch.set_params(params);
  dispatch.groups = spread_groups(context.device(), blocks);
  dispatch.note = tile.name();
  dispatch.work = work_of(tile, sizes, shared_bytes(tile, sizes), registers(tile, sizes));
  return lowered;
}

std::optional<std::string> refuse_attention_tiled(const LowerContext& context) {
  if (auto reason = refuse(context, "attention_tiled", name_of(context.input(attention_input::q).dtype))) {
    return reason;
  }
  const AttentionSizes sizes = attention_sizes(context);
  if (std::max(sizes.key_width, sizes.value_width) > widest) {
    return "heads are " + std::to_string(std::max(sizes.key_width, sizes.value_width)) + " wide, at most " +
           std::to_string(widest) + " is possible";
  }
  if (tiles_for(context).empty()) return "no tile fits the device's workgroups";
  return std::nullopt;
}

double prefer_attention_tiled(const LowerContext&) { return 1; }

Lowered lower_attention_tiled(const LowerContext& context) {
  return lower_attention_tiled_as(context, configured(context, tiles_for(context)));
}

std::vector<std::string> attention_tiled_configurations(const LowerContext& context) {
  return names_of(tiles_for(context));
}

}  // namespace vitrine
