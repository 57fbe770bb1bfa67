// The shared-memory kernel of attention_gradient (shaders/attention/attention_gradient_tiled.comp).
#include <algorithm>

#include "runtime/ops/attention/attention_gradient_kernels.h"
#include "runtime/ops/cost.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/occupancy.h"
#include "shaders/attention/attention_gradient.h"

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
  const uint64_t statistics = sizes.batch * sizes.heads * sizes.queries;
  lowered.scratch.push_back(statistics * sizeof(float));
  const Operand deltas = Operand::scratch(0);
  const bool drops = drops_weights(context.attributes());
  const AttentionDrops dropping = attention_drops(context.attributes());
  Dispatch& sums = lowered.dispatches.emplace_back();
  sums.shader = &find_shader("attention_gradient_deltas", "f32");
  sums.constants = {{"local_size", workgroup_size(context.device(), 64)},
                    {"value_width", to_u32(sizes.value_width)}};
  sums.operands = {Operand::input(out), Operand::input(out_gradient), deltas};
  sums.set_params(shader::AttentionDeltasParams{
      .count = to_u32(statistics), .queries = to_u32(sizes.queries), .heads = to_u32(sizes.heads)});
  sums.groups = spread_groups(context.device(), ceil_div(statistics, sums.constant("local_size")));

  // Of a query q and the gradient of its result; of a key k and v.
  struct Side {
    uint64_t tokens;
    uint32_t keys_at, values_at;  // which inputs
    AttentionRows keys, values;
  };
  const Side queries{sizes.queries,
                     attention_input::q,
                     out_gradient,
                     attention_rows_of(context, attention_input::q),
                     {to_u32(context.input(out_gradient).shape[2]), 0}};
  const Side keys{sizes.keys, attention_input::k, attention_input::v,
                  attention_rows_of(context, attention_input::k),
                  attention_rows_of(context, attention_input::v)};
  const auto run = [&](const Side& own, const Side& other, bool own_keys, Operand first, Operand second) {
    const uint64_t blocks = ceil_div(own.tokens, tile.block_q) * sizes.heads * sizes.batch;
    const bool aligned = (to_u32(sizes.key_width) | to_u32(sizes.value_width) | own.keys.stride |
                          own.keys.offset | own.values.stride | own.values.offset | other.keys.stride |
                          other.keys.offset | other.values.stride | other.values.offset) %
                             4 ==
                         0;
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
                          {"aligned", aligned},
                          {"own_keys", own_keys},
                          {"drop", drops}};
    dispatch.operands = {Operand::input(own.keys_at),
                         Operand::input(own.values_at),
                         Operand::input(other.keys_at),
                         Operand::input(other.values_at),
                         Operand::input(lse),
                         deltas,
                         drops ? Operand::input(step) : Operand::nothing(),
                         first,
                         second};
    dispatch.set_params(
        shader::AttentionGradientParams{.own = to_u32(own.tokens),
                                        .others = to_u32(other.tokens),
                                        .heads = to_u32(sizes.heads),
                                        .own_key_stride = own.keys.stride,
                                        .own_key_offset = own.keys.offset,
                                        .own_value_stride = own.values.stride,
                                        .own_value_offset = own.values.offset,
                                        .other_key_stride = other.keys.stride,
                                        .other_key_offset = other.keys.offset,
                                        .other_value_stride = other.values.stride,
                                        .other_value_offset = other.values.offset,
                                        .scale = static_cast<float>(context.attributes().number("scale")),
                                        .blocks = to_u32(blocks),
                                        .drop_stream = dropping.stream,
                                        .drop_threshold = dropping.threshold,
                                        .drop_factor = dropping.factor});
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
