#include "runtime/ops/explain/attention_rollout.h"

#include "runtime/ops/lowering.h"
#include "shaders/explain/attention_rollout.h"

namespace vitrine {
namespace {

constexpr uint32_t input_maps = 0, input_start = 1;

struct Rows {
  uint64_t first = 0, count = 0;
  bool mean = false;
};
template <typename Context>
Rows rows_of(const Context& c) {
  const uint64_t tokens = c.input(input_maps).shape[1];
  const auto first = static_cast<uint64_t>(c.attributes().integer("first_row"));
  const auto count = static_cast<uint64_t>(c.attributes().integer("rows"));
  return {.first = first,
          .count = count != 0 ? count : tokens - std::min(first, tokens),
          .mean = c.attributes().flag("mean_rows")};
}

void infer(InferContext& c) {
  const Value& maps = c.input(input_maps);
  c.require(maps.dtype == DType::f32 && maps.shape.rank() == 3 && maps.shape[1] == maps.shape[2],
            "the maps are " + std::string(name_of(maps.dtype)) + " " + maps.shape.to_string() +
                ", expected f32 [images, tokens, tokens]");
  const uint64_t tokens = maps.shape[1];
  if (c.has_input(input_start)) {
    const Value& start = c.input(input_start);
    c.require(start.dtype == DType::f32 && start.shape.rank() == 3 && start.shape[0] == maps.shape[0] &&
                  start.shape[2] == tokens,
              "the start is " + std::string(name_of(start.dtype)) + " " + start.shape.to_string() +
                  ", expected f32 [" + std::to_string(maps.shape[0]) + ", rows, " + std::to_string(tokens) +
                  "]");
    c.output(start.shape, DType::f32);
    return;
  }
  const Rows rows = rows_of(c);
  c.require(rows.count > 0 && rows.count <= tokens && rows.first <= tokens - rows.count,
            std::to_string(rows.count) + " rows from number " + std::to_string(rows.first) +
                " on were asked for, of " + std::to_string(tokens));
  c.output({maps.shape[0], rows.mean ? 1 : rows.count, tokens}, DType::f32);
}

double flops(const LowerContext& c) {
  const Shape& result = c.output(0).shape;
  return 2.0 * static_cast<double>(result.elements()) * static_cast<double>(result[-1]);
}

// Rows of the result that an invocation computes. On a CPU an element of the matrix is dear to load, and
// sums are cheap to keep; a GPU wants more invocations.
constexpr uint64_t small_block = 4, large_block = 16;

std::optional<std::string> refuses(const LowerContext& c) {
  const auto& most = c.device().max_workgroup_count;
  if (ceil_div(c.output(0).shape[1], small_block) > most[1] || c.output(0).shape[0] > most[2])
    return "there are too many rows or images";
  if (auto reason = refuse(c, "attention_rollout_sums", "f32")) return reason;
  return refuse(c, "attention_rollout", "f32");
}

template <uint64_t block>
Lowered lower(const LowerContext& c) {
  const Shape &maps = c.input(input_maps).shape, &result = c.output(0).shape;
  const bool has_start = c.has_input(input_start);
  const Rows rows = rows_of(c);
  shader::AttentionRolloutParams params{.count = to_u32(maps.rows()),
                                        .tokens = to_u32(maps[2]),
                                        .rows = to_u32(result[1]),
                                        .first_row = to_u32(rows.first),
                                        .mean_of = rows.mean ? to_u32(rows.count) : 0};
  const uint32_t local_size = workgroup_size(c.device(), 64);

  Dispatch sums;
  sums.shader = &find_shader("attention_rollout_sums", "f32");
  sums.constants = {{"local_size", local_size}};
  sums.operands = {Operand::input(input_maps), Operand::scratch(0)};
  sums.set_params(params);
  sums.groups = spread_groups(c.device(), ceil_div(params.count, local_size));
  sums.note = "sums";

  Dispatch product;
  product.shader = &find_shader("attention_rollout", "f32");
  product.constants = {{"local_size", local_size}, {"has_start", has_start}, {"block", block}};
  product.operands = {Operand::input(input_maps), Operand::scratch(0),
                      has_start ? Operand::input(input_start) : Operand::nothing(), Operand::output(0)};
  product.set_params(params);
  product.groups = {to_u32(ceil_div(result[2], local_size)), to_u32(ceil_div(result[1], block)),
                    to_u32(result[0])};
  product.note = "product";

  Lowered lowered;
  lowered.scratch = {maps.rows() * sizeof(float)};
  lowered.dispatches = {std::move(sums), std::move(product)};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower<small_block>},
                                 {"cpu_blocks", Target::cpu, refuses, prefer_on_cpu, lower<large_block>}};

}  // namespace

const OpDef op_attention_rollout{"attention_rollout", infer, flops, kernels, attention_rollout_cases};

ValueId attention_rollout(Graph& graph, std::string name, ValueId maps, const RolloutRows& which) {
  return graph.add(op_attention_rollout, std::move(name), {maps, ValueId{}},
                   {{"first_row", static_cast<int64_t>(which.first_row)},
                    {"rows", static_cast<int64_t>(which.rows)},
                    {"mean_rows", int64_t{which.mean_rows}}})[0];
}

ValueId attention_rollout(Graph& graph, std::string name, ValueId maps, ValueId start) {
  return graph.add(op_attention_rollout, std::move(name), {maps, start},
                   {{"first_row", int64_t{0}}, {"rows", int64_t{0}}, {"mean_rows", int64_t{0}}})[0];
}

}  // namespace vitrine
