#include "runtime/ops/moves/sum_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/moves/sum_rows.h"

namespace vitrine {
namespace {

// Up to here one invocation adds all rows of its column.
constexpr uint64_t rows_at_once = 64;
// Every lane reads what its whole subgroup does.
constexpr uint32_t most_lanes = 16;
constexpr uint64_t wanted_groups = 32;

void infer(InferContext& c) {
  const Value& a = c.input(0);
  c.require(is_computable(a.dtype), "x is " + std::string(name_of(a.dtype)) + ", expected f32 or f16");
  if (c.has_input(1)) {
    const Value& b = c.input(1);
    c.require(a.shape == b.shape && a.dtype == b.dtype,
              "the factors are " + std::string(name_of(a.dtype)) + " " + a.shape.to_string() + " and " +
                  std::string(name_of(b.dtype)) + " " + b.shape.to_string() + ", expected the same");
  }
  const int64_t kept = c.attributes().integer("kept");
  c.require(kept >= 1 && kept <= static_cast<int64_t>(a.shape.rank()),
            std::to_string(kept) + " dimensions of " + a.shape.to_string() + " can't be kept");
  c.output(Shape(a.shape.dims().last(static_cast<size_t>(kept))), DType::f32);
}

double flops(const LowerContext& c) {
  return (c.has_input(1) ? 2.0 : 1.0) * static_cast<double>(c.input(0).shape.elements());
}

uint64_t rows_of(const LowerContext& c) { return c.input(0).shape.elements() / c.output(0).shape.elements(); }

// One pass over all rows, or one that leaves `partial` of them and a second one over these. `pass` is given
// each dispatch and how many sums it makes.
template <typename Pass>
Lowered lower_passes(const LowerContext& c, uint64_t partial, Pass pass) {
  const uint64_t width = c.output(0).shape.elements();
  const uint64_t rows = c.input(0).shape.elements() / width;
  const Operand b = c.has_input(1) ? Operand::input(1) : Operand::nothing();
  Lowered lowered;
  const auto add = [&](DType dtype, std::vector<Operand> operands, uint64_t from, uint64_t to) {
    Dispatch& dispatch = lowered.dispatches.emplace_back();
    dispatch.operands = std::move(operands);
    dispatch.set_params(shader::SumRowsParams{to_u32(from * width), to_u32(to * width)});
    dispatch.note = std::to_string(from) + " rows to " + std::to_string(to);
    pass(dispatch, dtype, to * width);
  };
  if (partial == 1) {
    add(c.input(0).dtype, {Operand::input(0), b, Operand::output(0)}, rows, 1);
    return lowered;
  }
  lowered.scratch.push_back(partial * width * sizeof(float));
  add(c.input(0).dtype, {Operand::input(0), b, Operand::scratch(0)}, rows, partial);
  add(DType::f32, {Operand::scratch(0), Operand::nothing(), Operand::output(0)}, partial, 1);
  return lowered;
}

std::optional<std::string> refuse_simple(const LowerContext& c) {
  return refuse(c, "sum_rows", name_of(c.input(0).dtype));
}

Lowered lower_simple(const LowerContext& c) {
  return lower_passes(c, partial_rows(rows_of(c)), [&](Dispatch& dispatch, DType dtype, uint64_t sums) {
    dispatch.shader = &find_shader("sum_rows", name_of(dtype));
    dispatch.constants = {{"local_size", workgroup_size(c.device(), 128)},
                          {"of_products", dispatch.operands[1] != Operand::nothing()}};
    dispatch.groups = spread_groups(c.device(), ceil_div(sums, dispatch.constant("local_size")));
  });
}

// As few workgroups as keep the cores busy, for each costs as much as some hundred elements; and no sum
// longer than eight times 512 rows.
uint64_t lanes_partial_rows(const LowerContext& c) {
  const uint64_t rows = rows_of(c), width = c.output(0).shape.elements();
  if (rows <= rows_at_once) return 1;
  const uint64_t wanted = ceil_div(wanted_groups * c.device().subgroup_size, width);
  return std::max(std::min(wanted, rows / rows_at_once), ceil_div(rows, 8 * 512));
}

std::optional<std::string> refuse_lanes(const LowerContext& c) {
  if (c.input(0).dtype != DType::f32) return "x is f16, it only reads f32";
  const uint32_t lanes = c.device().subgroup_size;
  if (lanes == 0 || lanes > most_lanes)
    return "subgroups of " + std::to_string(lanes) + " lanes are too wide";
  if (ceil_div(c.output(0).shape.elements() * lanes_partial_rows(c), lanes) >
      c.device().max_workgroup_count[0])
    return "the sums need more workgroups than the device takes";
  return refuse(c, "sum_rows_cpu_lanes", "f32");
}

Lowered lower_lanes(const LowerContext& c) {
  const uint32_t lanes = c.device().subgroup_size;
  Lowered lowered = lower_passes(c, lanes_partial_rows(c), [&](Dispatch& dispatch, DType, uint64_t sums) {
    dispatch.shader = &find_shader("sum_rows_cpu_lanes", "f32");
    dispatch.constants = {
        {"local_size", lanes}, {"lanes", lanes}, {"of_products", dispatch.operands[1] != Operand::nothing()}};
    dispatch.subgroup_size = lanes;
    dispatch.groups = {to_u32(ceil_div(sums, lanes)), 1, 1};
  });
  lowered.overread_bytes = lanes * sizeof(float);
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuse_simple, no_preference, lower_simple},
                                 {"cpu_lanes", Target::cpu, refuse_lanes, prefer_on_cpu, lower_lanes}};

}  // namespace

const OpDef op_sum_rows{"sum_rows", infer, flops, kernels, sum_rows_cases};

ValueId sum_rows(Graph& graph, std::string name, ValueId x, size_t kept) {
  return graph.add(op_sum_rows, std::move(name), {x, {}}, {{"kept", static_cast<int64_t>(kept)}})[0];
}

ValueId sum_products(Graph& graph, std::string name, ValueId a, ValueId b, size_t kept) {
  return graph.add(op_sum_rows, std::move(name), {a, b}, {{"kept", static_cast<int64_t>(kept)}})[0];
}

uint64_t partial_rows(uint64_t rows) {
  const auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(rows)));
  return ceil_div(rows, std::max(rows_at_once, root));
}

}  // namespace vitrine
