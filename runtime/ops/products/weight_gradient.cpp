#include "runtime/ops/products/weight_gradient.h"

#include <algorithm>
#include <utility>

#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/sum_rows.h"
#include "runtime/ops/moves/transpose.h"
#include "runtime/ops/products/matmul.h"
#include "shaders/products/weight_gradient.h"

namespace vitrine {
namespace {

constexpr uint32_t dy_input = 0, x_input = 1;
constexpr uint64_t side = 4;  // of a workgroup's tile

struct Sizes {
  uint64_t rows = 0, groups = 1, slices = 1, n = 0, k = 0;
  uint64_t tiles() const { return groups * ceil_div(n, side) * ceil_div(k, side); }
};

template <typename Context>
Sizes sizes_of(const Context& c) {
  const auto groups = static_cast<uint64_t>(c.attributes().integer("groups"));
  Sizes sizes{.groups = groups ? groups : 1};
  sizes.slices = std::max<uint64_t>(sizes.groups / static_cast<uint64_t>(c.attributes().integer("sets")), 1);
  sizes.rows = c.input(dy_input).shape.rows();
  sizes.n = c.input(dy_input).shape[-1] / sizes.groups;
  sizes.k = c.input(x_input).shape[-1] / sizes.slices;
  return sizes;
}

void infer(InferContext& c) {
  const Value& dy = c.input(dy_input);
  const Value& x = c.input(x_input);
  for (const Value* value : {&dy, &x}) {
    c.require(value->dtype == DType::f32 && value->shape.rank() >= 1,
              "'" + value->name + "' is " + std::string(name_of(value->dtype)) + " " +
                  value->shape.to_string() + ", f32 [.., columns] was expected");
  }
  const auto groups = static_cast<uint64_t>(c.attributes().integer("groups"));
  const int64_t sets = c.attributes().integer("sets");
  c.require(sets >= 1 && (groups ? groups : 1) % static_cast<uint64_t>(sets) == 0,
            std::to_string(groups) + " groups can't be " + std::to_string(sets) + " sets");
  const Sizes sizes = sizes_of(c);
  c.require(
      x.shape.rows() == sizes.rows && dy.shape[-1] % sizes.groups == 0 && x.shape[-1] % sizes.slices == 0,
      "dy is " + dy.shape.to_string() + " and x " + x.shape.to_string() + ", as many rows of a multiple of " +
          std::to_string(sizes.groups) + " elements were expected");
  c.output(groups ? Shape{groups, sizes.n, sizes.k} : Shape{sizes.n, sizes.k}, DType::f32);
  if (c.attributes().flag("bias"))
    c.output(groups ? Shape{groups, sizes.n} : Shape{sizes.n}, DType::f32, "bias");
}

double flops(const LowerContext& c) {
  return 2.0 * static_cast<double>(c.input(dy_input).shape.rows()) *
         static_cast<double>(c.output(0).shape.elements());
}

Lowered lower_as(const LowerContext& c, std::string_view variant, uint32_t wanted_size) {
  const Sizes sizes = sizes_of(c);
  const bool bias = c.attributes().flag("bias");
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("weight_gradient", variant);
  dispatch.constants = {{"local_size", workgroup_size(c.device(), wanted_size)},
                        {"n", to_u32(sizes.n)},
                        {"k", to_u32(sizes.k)},
                        {"groups", to_u32(sizes.groups)},
                        {"has_bias", bias},
                        {"slices", to_u32(sizes.slices)}};
  dispatch.operands = {Operand::input(dy_input), Operand::input(x_input), Operand::output(0),
                       bias ? Operand::output(1) : Operand::nothing()};
  dispatch.set_params(shader::WeightGradientParams{to_u32(sizes.rows), to_u32(sizes.tiles())});
  dispatch.groups = spread_groups(c.device(), sizes.tiles());
  return lowered;
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "weight_gradient", "f32");
}

// 20 sums an invocation, for which 128 of them need 10 KB of shared memory.
Lowered lower_simple(const LowerContext& c) { return lower_as(c, "f32", 128); }

std::optional<std::string> refuse_quads(const LowerContext& c) {
  if (auto reason = refuse(c, "weight_gradient", "f32_quads")) return reason;
  for (const uint32_t i : {dy_input, x_input}) {
    if (auto reason = refuse_half_word(c.input(i))) return reason;
  }
  const Sizes sizes = sizes_of(c);
  if (sizes.n % 4 == 0 && sizes.k % 4 == 0) return std::nullopt;
  return "matrices of " + std::to_string(sizes.n) + " x " + std::to_string(sizes.k) +
         " can't be cut into tiles of 4 x 4";
}

Lowered lower_quads(const LowerContext& c) { return lower_as(c, "f32_quads", 64); }

// How the kernel `cpu_lanes` shares out the work: see its shader.
struct Lanes {
  uint64_t lanes, groups_each, sums, pieces, parts, rows_each;
};

constexpr uint64_t chunk = 64;  // rows that are summed before they are added to the others
constexpr uint32_t most_lanes = 16;

Lanes lanes_of(const LowerContext& c) {
  constexpr uint64_t most_sums = 24;       // in registers
  constexpr uint64_t wanted_groups = 16;   // to keep the cores busy
  constexpr uint64_t rows_at_once = 1024;  // that take less time than a second dispatch
  constexpr uint64_t most_chunks = 128;    // of one sum
  const Sizes sizes = sizes_of(c);
  Lanes l{.lanes = c.device().subgroup_size, .groups_each = 1};
  for (uint64_t each = 2; each <= sizes.slices && each * sizes.n <= l.lanes; ++each) {
    if (sizes.slices % each == 0) l.groups_each = each;
  }
  const uint64_t span = l.groups_each * sizes.k;
  l.sums = ceil_div(span, ceil_div(span, most_sums));
  l.pieces =
      sizes.groups / l.groups_each * ceil_div(l.groups_each * sizes.n, l.lanes) * ceil_div(span, l.sums);
  if (c.device().loops_gather) {
    l.rows_each = chunk;
    l.parts = ceil_div(sizes.rows, chunk);
    return l;
  }
  const uint64_t chunks = std::max<uint64_t>(sizes.rows / chunk, 1);
  const uint64_t wanted = sizes.rows <= rows_at_once ? 1 : ceil_div(wanted_groups, l.pieces);
  const uint64_t chunks_each = std::min(ceil_div(chunks, wanted), most_chunks);
  l.rows_each = chunks_each * chunk;
  l.parts = ceil_div(chunks, chunks_each);
  return l;
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  const uint32_t lanes = c.device().subgroup_size;
  if (lanes == 0 || lanes > most_lanes)
    return "subgroups of " + std::to_string(lanes) + " lanes are too wide";
  if (auto reason = c.missing("weight_gradient_cpu_sums", "f32")) return reason;
  if (auto reason = refuse(c, "weight_gradient_cpu_lanes", "f32")) return reason;
  const Lanes l = lanes_of(c);
  const auto& most = c.device().max_workgroup_count;
  if (l.pieces <= most[0] && l.parts <= most[1] && l.parts * c.output(0).shape.elements() <= UINT32_MAX)
    return std::nullopt;
  return "the sums need more workgroups than the device takes";
}

// What the two ways of going through the rows share: a dispatch that gives `parts` parts of them, from the
// first_part-th on, their sums.
Dispatch lanes_dispatch(const LowerContext& c, const Lanes& l, uint64_t first_part, uint64_t parts) {
  const Sizes sizes = sizes_of(c);
  Dispatch rows;
  rows.shader = &find_shader("weight_gradient_cpu_lanes", "f32");
  rows.constants = {{"local_size", to_u32(l.lanes)},
                    {"lanes", to_u32(l.lanes)},
                    {"n", to_u32(sizes.n)},
                    {"k", to_u32(sizes.k)},
                    {"groups", to_u32(sizes.groups)},
                    {"slices", to_u32(sizes.slices)},
                    {"groups_each", to_u32(l.groups_each)},
                    {"sums", to_u32(l.sums)},
                    {"chunk", to_u32(chunk)},
                    {"has_chunks", sizes.rows >= chunk},
                    {"has_rest", sizes.rows % chunk != 0},
                    {"has_bias", c.attributes().flag("bias")},
                    {"straight", false},
                    {"gathers", false}};
  rows.set_params(shader::with_digits(shader::WeightGradientLanesParams{
      .rows = to_u32(sizes.rows), .rows_each = to_u32(l.rows_each), .first_part = to_u32(first_part)}));
  rows.groups = {to_u32(l.pieces), to_u32(parts), 1};
  rows.subgroup_size = to_u32(l.lanes);
  rows.note =
      std::to_string(l.sums) + " sums of " + std::to_string(std::min(l.rows_each, sizes.rows)) + " rows";
  return rows;
}

std::vector<Dispatch> lanes_dispatches(const LowerContext& c, const Lanes& l) {
  if (!c.device().loops_gather) return {lanes_dispatch(c, l, 0, l.parts)};
  const uint64_t rows = sizes_of(c).rows, whole = rows / chunk;
  std::vector<Dispatch> dispatches;
  if (whole > 0) {
    Dispatch& chunks = dispatches.emplace_back(lanes_dispatch(c, l, 0, whole));
    chunks.constant("straight") = true;
    chunks.constant("has_rest") = false;
  }
  if (rows % chunk != 0) {
    Dispatch& rest = dispatches.emplace_back(lanes_dispatch(c, l, whole, 1));
    rest.constant("gathers") = true;
    rest.constant("has_chunks") = false;
    rest.note = std::to_string(l.sums) + " sums of " + std::to_string(rows % chunk) + " rows";
  }
  return dispatches;
}

Lowered lower_lanes(const LowerContext& c) {
  const Lanes l = lanes_of(c);
  const bool bias = c.attributes().flag("bias"), at_once = l.parts == 1;
  const uint64_t weights = c.output(0).shape.elements(), biases = bias ? c.output(1).shape.elements() : 0;
  const std::vector<Operand> results{Operand::output(0), bias ? Operand::output(1) : Operand::nothing()};
  const std::vector<Operand> parts{Operand::scratch(0), bias ? Operand::scratch(1) : Operand::nothing()};

  Lowered lowered;
  lowered.dispatches = lanes_dispatches(c, l);
  for (Dispatch& rows : lowered.dispatches) {
    rows.operands = {Operand::input(dy_input), Operand::input(x_input)};
    rows.operands.insert(rows.operands.end(), (at_once ? results : parts).begin(),
                         (at_once ? results : parts).end());
  }
  // Of the last row: columns that nobody asked for.
  lowered.overread_bytes = std::max(l.sums, l.lanes) * sizeof(float);
  if (at_once) return lowered;

  lowered.scratch.push_back(l.parts * weights * sizeof(float));
  if (bias) lowered.scratch.push_back(l.parts * biases * sizeof(float));
  Dispatch& sums = lowered.dispatches.emplace_back();
  sums.shader = &find_shader("weight_gradient_cpu_sums", "f32");
  sums.constants = {{"local_size", workgroup_size(c.device(), 64)}};
  sums.operands = parts;
  sums.operands.insert(sums.operands.end(), results.begin(), results.end());
  sums.set_params(shader::WeightGradientSumsParams{to_u32(l.parts), to_u32(weights), to_u32(biases)});
  sums.groups = {to_u32(ceil_div(weights + biases, sums.constant("local_size"))), 1, 1};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes},
                                 {"cpu_quads", Target::cpu, refuse_quads, prefer_on_cpu, lower_quads}};

}  // namespace

const OpDef op_weight_gradient{"weight_gradient", infer, flops, kernels, weight_gradient_cases};

WeightGradient weight_gradient(Graph& graph, std::string name, ValueId dy, ValueId x,
                               const WeightGradientOptions& options) {
  const auto out = graph.add(op_weight_gradient, std::move(name), {dy, x},
                             {{"groups", static_cast<int64_t>(options.groups)},
                              {"sets", static_cast<int64_t>(options.sets)},
                              {"bias", int64_t{options.bias}}});
  return {out[0], options.bias ? out[1] : ValueId{}};
}

WeightGradient linear_gradients(Graph& graph, const std::string& name, ValueId dy, ValueId x,
                                const LinearGradientOptions& options) {
  // Up to here a workgroup for each 4 x 4 elements leaves a transposed product behind.
  constexpr uint64_t small = 1024;
  const bool is_small = x && graph.value(x).dtype == DType::f32 &&
                        graph.value(dy).shape[-1] * graph.value(x).shape[-1] <= small;
  if (is_small) return weight_gradient(graph, name, dy, x, {.bias = options.bias});
  WeightGradient result;
  if (options.bias) result.bias = sum_rows(graph, name + ".bias", dy);
  if (x) {
    const ValueId narrow = convert(graph, name + ".narrow", dy, graph.value(x).dtype);
    result.weight =
        matmul(graph, name, transpose_rows(graph, name + ".y", narrow), transpose_rows(graph, name + ".x", x),
               {.rounded = options.rounded, .magnitude = options.magnitude});
  }
  return result;
}

}  // namespace vitrine
