// The kernel of attention for devices that are a CPU (shaders/attention/cpu/attention_cpu_lanes.comp).
#include "shaders/attention/cpu/attention_cpu_lanes.h"

#include <algorithm>

#include "runtime/ops/attention/attention_kernels.h"
#include "runtime/ops/attention/relative_bias.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/row_blocks.h"

namespace vitrine {
namespace {

std::string lanes_variant(const LowerContext& context) {
  const DType type = context.output(0).dtype;
  return shared_rows_variant(context.device(), context.output_layout(0) ? storage_variant(type, DType::f32)
                                                                        : std::string(name_of(type)));
}

// Elements of keys that a step's code has room for: 14 keys of 64, which divide the usual 197 but for one.
constexpr uint64_t most_unrolled = 896;

std::vector<AttentionStep> steps_for(const LowerContext& context) {
  return attention_steps_for(context, most_unrolled, "keys");
}

// Where the rows of q, k or v lie.
struct Rows {
  Operand operand;
  uint32_t stride = 0, offset = 0;
};

Rows rows_of(const LowerContext& context, uint32_t input, const char* offset) {
  return {Operand::input(input), to_u32(context.input(input).shape[2]),
          to_u32(static_cast<uint64_t>(context.attributes().integer(offset)))};
}

// The kernel reads keys and values as f32: f16 ones are converted into scratch in front of it.
Rows f32_rows(const LowerContext& context, const Rows& rows, uint64_t count, uint64_t width,
              Lowered& lowered) {
  if (context.input(rows.operand.index).dtype == DType::f32) return rows;
  const uint32_t threads = workgroup_size(context.device(), 64);
  const Operand dense = Operand::scratch(to_u32(lowered.scratch.size()));
  lowered.scratch.push_back(count * width * sizeof(float));
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("attention_cpu_lanes_rows", "f16");
  dispatch.constants = {{"local_size", threads},
                        {"whole_quads", width % 4 == 0 && rows.stride % 4 == 0 && rows.offset % 4 == 0},
                        {"width", to_u32(width)}};
  dispatch.operands = {rows.operand, dense};
  dispatch.set_params(
      shader::AttentionLanesRowsParams{.rows = to_u32(count), .stride = rows.stride, .offset = rows.offset});
  dispatch.groups = striding_groups(context.device(), count * ceil_div(width, 4), threads);
  return {dense, to_u32(width), 0};
}

// Whether each row of a head starts and ends with a whole 64-bit word.
bool lie_in_words(const LowerContext& context, const Rows& rows, uint64_t width) {
  if ((rows.stride | rows.offset | width) % 2 != 0) return false;
  return rows.operand.kind != Operand::Kind::input || !refuse_half_word(context.input(rows.operand.index));
}

}  // namespace

// Everything is unrolled over widths and keys: wide heads take fewer keys a step, so that the code of a step
// stays within what compiles in reasonable time. Of the rest, the step is best that takes the fewest turns,
// those counted in which the keys that are left over go one by one.
std::vector<uint32_t> attention_steps(uint64_t tokens, uint64_t width, uint64_t unrolled, uint32_t least,
                                      bool fours) {
  const auto fitting = [&](uint64_t step) { return step <= 2 || !fours || step % 4 == 0; };
  std::vector<uint32_t> steps;
  if (width <= 96) {
    uint32_t best = least;
    const auto turns = [&](uint32_t step) { return tokens / step + tokens % step; };
    for (auto step = to_u32(std::clamp<uint64_t>(unrolled / width, least, 64)); step > 1; --step) {
      if (fitting(step) && turns(step) < turns(best)) best = step;
    }
    steps.push_back(best);
  }
  for (const uint32_t step : {8, 4, 2}) {
    const uint64_t most = width <= 96 ? 8 : width <= 160 ? 4 : 2;
    if (step <= most && (steps.empty() || step != steps[0])) steps.push_back(step);
  }
  return steps;
}

std::vector<AttentionStep> attention_steps_for(const LowerContext& context, uint64_t unrolled,
                                               std::string_view unit) {
  const AttentionSizes sizes = attention_sizes(context);
  // Handing elements from lane to lane is three times the code, and what leaves the instruction cache is
  // slow.
  constexpr uint64_t most_handed = 160;
  const bool handed = context.device().loops_gather;
  std::vector<AttentionStep> steps;
  for (const uint32_t tokens : attention_steps(sizes.keys, std::max(sizes.key_width, sizes.value_width),
                                               handed ? std::min(unrolled, most_handed) : unrolled,
                                               handed ? 2 : 8, drops_weights(context.attributes()))) {
    steps.push_back({tokens, unit});
  }
  return steps;
}

std::optional<std::string> refuse_attention_lanes(const LowerContext& context) {
  if (auto reason = context.missing("attention_cpu_lanes", lanes_variant(context))) return reason;
  const AttentionSizes sizes = attention_sizes(context);
  if (context.output(0).dtype == DType::f16) {
    if (auto reason = context.missing("attention_cpu_lanes_rows", "f16")) return reason;
  }
  if (std::max(sizes.key_width, sizes.value_width) > 256) return "its heads are wider than 256";
  for (uint32_t i = attention_input::q; i <= attention_input::bias; ++i) {
    if (context.has_input(i) && context.input(i).shape.elements() > UINT32_MAX / 4)
      return "a tensor is too large for 32-bit indices";
  }
  const auto& groups = context.device().max_workgroup_count;
  if (sizes.heads > groups[1] || sizes.batch > groups[2]) return "there are too many heads or images";
  return std::nullopt;
}

// A GPU could not hold a query and an output in one invocation's registers.
double prefer_attention_lanes(const LowerContext& context) {
  return context.device().type == DeviceType::cpu ? 3 : -1;
}

Lowered lower_attention_lanes(const LowerContext& context) {
  const AttentionSizes sizes = attention_sizes(context);
  const uint32_t keys_a_step = configured(context, steps_for(context)).tokens;
  // A workgroup of one subgroup: with more lanes, fewer token counts would fill the last one.
  const uint32_t lanes = workgroup_size(context.device(), std::max(context.device().subgroup_size, 1u));

  Lowered lowered;
  const Rows q = rows_of(context, attention_input::q, "q_offset");
  const Rows k = f32_rows(context, rows_of(context, attention_input::k, "k_offset"), sizes.batch * sizes.keys,
                          sizes.heads * sizes.key_width, lowered);
  const Rows v = f32_rows(context, rows_of(context, attention_input::v, "v_offset"), sizes.batch * sizes.keys,
                          sizes.heads * sizes.value_width, lowered);

  const bool store_lse = context.attributes().flag("store_lse");
  const bool drops = drops_weights(context.attributes());
  const AttentionDrops dropping = attention_drops(context.attributes());
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  const std::optional<RowBlocks> blocks = row_blocks_of(context.output_layout(0));
  dispatch.shader = &find_shader("attention_cpu_lanes", lanes_variant(context));
  dispatch.subgroup_size = shared_rows_subgroup(context.device());
  dispatch.constants = {
      {"local_size", lanes},
      {"key_width", to_u32(sizes.key_width)},
      {"value_width", to_u32(sizes.value_width)},
      {"block", keys_a_step},
      {"q_stride", q.stride},
      {"k_stride", k.stride},
      {"v_stride", v.stride},
      {"store_lse", store_lse},
      {"block_rows", blocks ? blocks->block_rows : 0},
      {"unroll", blocks ? blocks->unroll : 16},
      {"halves", blocks && context.output(0).dtype == DType::f16},
      {"drop", drops},
      {"causal", is_attention_causal(context.attributes())},
      {"wide", lie_in_words(context, k, sizes.key_width) && lie_in_words(context, v, sizes.value_width)}};
  add_relative_bias(context, dispatch);
  dispatch.operands = {q.operand,
                       k.operand,
                       v.operand,
                       drops ? Operand::input(attention_input::step) : Operand::nothing(),
                       relative_bias_operand(context, attention_input::bias),
                       Operand::output(0),
                       store_lse ? Operand::output(1) : Operand::nothing()};
  dispatch.set_params(
      shader::AttentionLanesParams{.queries = to_u32(sizes.queries),
                                   .keys = to_u32(sizes.keys),
                                   .heads = to_u32(sizes.heads),
                                   .q_offset = q.offset,
                                   .k_offset = k.offset,
                                   .v_offset = v.offset,
                                   .scale = static_cast<float>(context.attributes().number("scale")),
                                   .drop_stream = dropping.stream,
                                   .drop_threshold = dropping.threshold,
                                   .drop_factor = dropping.factor});
  dispatch.groups = {to_u32(ceil_div(sizes.queries, lanes)), to_u32(sizes.heads), to_u32(sizes.batch)};
  dispatch.note = std::to_string(keys_a_step) + " keys a step" + (blocks ? ", into blocks" : "");
  // A step of keys past the last one, and the last elements that are loaded together where a row's width is
  // no multiple.
  lowered.overread_bytes = (keys_a_step * std::max(k.stride, v.stride) + 2 * lanes) * sizeof(float);
  return lowered;
}

std::vector<std::string> attention_lanes_configurations(const LowerContext& context) {
  return names_of(steps_for(context));
}

bool attention_lanes_write(const LowerContext& context, const Layout& layout) {
  const Shape& shape = context.output(0).shape;
  const std::optional<RowBlocks> blocks = row_blocks_of(&layout);
  return blocks && blocks->rows == shape.rows() && blocks->depth == shape[-1];
}

}  // namespace vitrine
