// The shared-memory kernel of attention (shaders/attention_tiled.comp).
#include <algorithm>
#include <array>
#include <bit>

#include "runtime/ops/attention_kernels.h"
#include "runtime/ops/lowering.h"

namespace vitrine {
namespace {

constexpr uint64_t widest = 256;

// The first that fits is taken, unless it were mostly padding. More queries mean fewer reads of all keys and
// values, more keys fewer barriers; the last ones are for wide heads in 16 KiB, the least that Vulkan
// promises.
constexpr std::array<AttentionTile, 8> tiles{{
    {.threads = 128, .block_q = 32, .block_k = 32},
    {.threads = 128, .block_q = 32, .block_k = 16},
    {.threads = 128, .block_q = 16, .block_k = 16},
    {.threads = 128, .block_q = 16, .block_k = 8},
    {.threads = 64, .block_q = 8, .block_k = 32},
    {.threads = 64, .block_q = 8, .block_k = 16},
    {.threads = 64, .block_q = 8, .block_k = 8},
    {.threads = 32, .block_q = 8, .block_k = 4},
}};

uint32_t vec4s(uint64_t width) { return to_u32(ceil_div(width, 4)); }
uint32_t odd(uint32_t value) { return value | 1; }

// How the invocations share out an area of `height` x `width`: `columns` of them side by side.
uint32_t choose_columns(uint32_t threads, uint32_t height, uint32_t width, uint32_t read_x, uint32_t read_y) {
  uint32_t best = 0, least_area = 0, least_reads = 0;
  for (uint32_t columns = 1; columns <= threads; columns *= 2) {
    const uint32_t rows = threads / columns;
    if (height % rows != 0) continue;
    const uint32_t each_y = height / rows, each_x = to_u32(ceil_div(width, columns));
    const uint32_t area = each_y * each_x, reads = each_y * read_y + each_x * read_x;
    if (best == 0 || area < least_area || (area == least_area && reads < least_reads)) {
      best = columns;
      least_area = area;
      least_reads = reads;
    }
  }
  return best;
}

// True when every row of every head begins at a multiple of four elements and is made of whole fours.
bool aligned(const shader::AttentionParams& p) {
  return (p.key_width | p.value_width | p.q_stride | p.k_stride | p.v_stride | p.q_offset | p.k_offset |
          p.v_offset) %
             4 ==
         0;
}

// Those that fit, the best first.
std::vector<AttentionTile> tiles_for(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  std::vector<AttentionTile> fitting;
  for (const AttentionTile& tile : tiles) {
    if (fits(tile, sizes, context.device())) fitting.push_back(tile);
  }
  std::ranges::stable_partition(fitting, [&](const AttentionTile& tile) {
    return tile.block_q <= 8 || tile.block_q < 2 * std::bit_ceil(sizes.queries);
  });
  return fitting;
}

}  // namespace

std::string AttentionTile::name() const {
  return std::to_string(block_q) + "x" + std::to_string(block_k) + "/" + std::to_string(threads);
}

std::span<const AttentionTile> attention_tiles() { return tiles; }

uint64_t shared_bytes(const AttentionTile& tile, const AttentionSizes& sizes) {
  const uint32_t key_stride = odd(vec4s(sizes.key_width)), value_stride = odd(vec4s(sizes.value_width));
  return 16ull * tile.block_q * key_stride + 16ull * tile.block_k * std::max(key_stride, value_stride) +
         4ull * tile.block_q * (tile.block_k + 4) + 4ull * tile.threads + 4ull * tile.block_q;
}

bool fits(const AttentionTile& tile, const AttentionSizes& sizes, const Capabilities& device) {
  // Where there is more than 32 KiB, a workgroup leaves room for a second one beside it.
  const uint64_t budget =
      std::min<uint64_t>(device.max_shared_bytes, std::max<uint64_t>(32 * 1024, device.max_shared_bytes / 2));
  return tile.threads <= device.max_workgroup_invocations && tile.threads <= device.max_workgroup_size[0] &&
         shared_bytes(tile, sizes) <= budget;
}

Lowered lower_attention_tiled_as(const LowerContext& context, const AttentionTile& tile) {
  const AttentionSizes sizes = attention_sizes(context);
  const uint64_t blocks = ceil_div(sizes.queries, tile.block_q) * sizes.heads * sizes.batch;
  const shader::AttentionParams params = attention_params(context, blocks);
  const bool store_lse = context.attributes().flag("store_lse");

  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("attention_tiled", name_of(context.input(attention_input::q).dtype));
  dispatch.constants = {tile.threads, tile.threads, tile.block_q, tile.block_k, params.key_width,
                        params.value_width, choose_columns(tile.threads, tile.block_q, tile.block_k, 1, 1),
                        // For four keys an invocation reads a vec4 of weights a row and four a column.
                        choose_columns(tile.threads, tile.block_q, vec4s(sizes.value_width), 4, 1),
                        aligned(params), store_lse};
  dispatch.operands = {Operand::input(attention_input::q), Operand::input(attention_input::k),
                       Operand::input(attention_input::v), Operand::output(0),
                       store_lse ? Operand::output(1) : Operand::nothing()};
  dispatch.set_params(params);
  dispatch.groups = spread_groups(context.device(), blocks);
  dispatch.note = std::to_string(tile.block_q) + "x" + std::to_string(tile.block_k);
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
