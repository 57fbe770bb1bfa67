// The shared-memory kernel of attention_gradient (shaders/attention/attention_gradient_tiled.comp).
#include <algorithm>

#include "runtime/ops/attention/attention_gradient_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/cost.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"

namespace vitrine {
namespace {

uint32_t vec4s(uint64_t width) { return to_u32(ceil_div(width, 4)); }
uint32_t odd(uint32_t value) { return value | 1; }

uint64_t shared_bytes_of(const AttentionTile& tile, const AttentionSizes& sizes) {
  const uint64_t chunk = uint64_t{tile.block_q + tile.block_k} * odd(tile.chunk4);
  const uint64_t slice = uint64_t{tile.slice} * odd(vec4s(std::max(sizes.key_width, sizes.value_width)));
  return 16 * std::max(chunk, slice) + 4ull * tile.block_q * (tile.slice + 4);
}

// Two products' fragments, the sums of keys and values and a step's operands, counted as for attention's
// tiles.
double registers_of(const AttentionTile& tile, const AttentionSizes& sizes) {
  const auto columns = [&](uint64_t width) {
    return static_cast<double>(ceil_div(vec4s(width), tile.columns));
  };
  return 20 + 1.4 * tile.score_i() *
                  (2 * tile.score_j() + 4 * (columns(sizes.key_width) + columns(sizes.value_width)) + 4);
}

// Those that fit, the best first: those that attention likes, since both walk in the same way.
std::vector<AttentionTile> tiles_for(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  const Capabilities& device = context.device();
  std::vector<AttentionTile> fitting;
  for (const AttentionTile& tile : attention_tiles()) {
    if (tile.threads <= device.max_workgroup_invocations && tile.threads <= device.max_workgroup_size[0] &&
        shared_bytes_of(tile, sizes) <= device.max_shared_bytes) {
      fitting.push_back(tile);
    }
  }
  fitting = within_registers(fitting, register_budget(device),
                             [&](const AttentionTile& tile) { return registers_of(tile, sizes); });
  return fastest_first(fitting, device, [&](const AttentionTile& tile) {
    return work_of(tile, sizes, shared_bytes_of(tile, sizes), registers_of(tile, sizes));
  });
}

}  // namespace

std::optional<std::string> refuse_attention_gradient_tiled(const LowerContext& context) {
  for (const char* shader : {"attention_gradient_tiled", "attention_gradient_deltas", "zeros"}) {
    if (auto reason = refuse(context, shader, "f32")) return reason;
  }
  const AttentionSizes sizes = attention_sizes(context);
  if (std::max(sizes.key_width, sizes.value_width) > 256) return "its heads are wider than 256";
  if (tiles_for(context).empty()) return "no tile fits the device's workgroups";
  return std::nullopt;
}

Lowered lower_attention_gradient_tiled(const LowerContext& context) {
  using namespace attention_gradient_input;
  const AttentionSizes sizes = attention_sizes(context);
  const AttentionTile tile = configured(context, tiles_for(context));
  const auto outputs = attention_gradient_outputs(context.attributes());

  Lowered lowered;
  clear_unread_columns(context, lowered);
  const Operand statistics = append_query_statistics(context, lowered);

  const bool drops = drops_weights(context.attributes());
  const AttentionSide queries = query_side(context), keys = key_side(context);
  const auto run = [&](const AttentionSide& own, const AttentionSide& other, bool own_keys, Operand first,
                       Operand second) {
    const uint64_t blocks = ceil_div(own.tokens, tile.block_q) * sizes.heads * sizes.batch;
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.shader = &find_shader("attention_gradient_tiled", "f32");
    dispatch.constants = {{"local_size", tile.threads},
                          {"threads", tile.threads},
                          {"block_own", tile.block_q},
                          {"block_other", tile.block_k},
                          {"key_width", to_u32(sizes.key_width)},
                          {"value_width", to_u32(sizes.value_width)},
                          {"columns", tile.columns},
                          {"chunk4", tile.chunk4},
                          {"slice", tile.slice},
                          {"aligned", sides_by_four(sizes, own, other)},
                          {"own_keys", own_keys},
                          {"drop", drops}};
    dispatch.add_constants({{"bias_table", has_relative_bias(context.attributes())}});
    add_relative_grid(context, dispatch);
    dispatch.operands = {Operand::input(own.keys_at),
                         Operand::input(own.values_at),
                         Operand::input(other.keys_at),
                         Operand::input(other.values_at),
                         statistics,
                         drops ? Operand::input(step) : Operand::nothing(),
                         relative_bias_operand(context, bias),
                         first,
                         second};
    dispatch.set_params(attention_gradient_params(context, own, other, blocks));
    dispatch.groups = spread_groups(context.device(), blocks);
    dispatch.note = tile.name() + (own_keys ? " of keys" : " of queries");
  };
  run(queries, keys, false, Operand::output(outputs[attention_input::q]), Operand::nothing());
  run(keys, queries, true, Operand::output(outputs[attention_input::k]),
      Operand::output(outputs[attention_input::v]));
  return lowered;
}

std::vector<std::string> attention_gradient_tiled_configurations(const LowerContext& context) {
  return names_of(tiles_for(context));
}

}  // namespace vitrine
