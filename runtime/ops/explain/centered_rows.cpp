#include "runtime/ops/explain/centered_rows.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/explain/centered_rows.h"

namespace vitrine {
namespace {

uint64_t first_of(const Attributes& attributes) { return static_cast<uint64_t>(attributes.integer("first")); }
uint64_t count_of(const Attributes& attributes) { return static_cast<uint64_t>(attributes.integer("count")); }

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(
      x.dtype == DType::f32 && x.shape.rank() >= 2 && x.shape.rows() == x.shape[-2],
      "x is " + std::string(name_of(x.dtype)) + " " + x.shape.to_string() + ", expected one matrix of f32");
  const uint64_t first = first_of(c.attributes()), count = count_of(c.attributes());
  c.require(count > 0 && first <= x.shape[-2] && count <= x.shape[-2] - first,
            std::to_string(count) + " rows from number " + std::to_string(first) + " on were asked for, of " +
                std::to_string(x.shape[-2]));
  const uint64_t width = x.shape[-1];
  c.output(c.attributes().flag("transposed") ? Shape{width, count} : Shape{count, width}, DType::f32, "rows");
  c.output({width}, DType::f32, "means");
}

// Two means and a difference.
double flops(const LowerContext& c) { return 5.0 * static_cast<double>(c.output(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "centered_rows", "f32"); }

Lowered lower(const LowerContext& c) {
  const uint64_t width = c.input(0).shape[-1];
  Dispatch dispatch;
  dispatch.shader = &find_shader("centered_rows", "f32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 64)},
                        {"transposed", c.attributes().flag("transposed")}};
  dispatch.operands = {Operand::input(0), Operand::output(0), Operand::output(1)};
  dispatch.set_params(shader::CenteredRowsParams{.first_row = to_u32(first_of(c.attributes())),
                                                 .rows = to_u32(count_of(c.attributes())),
                                                 .width = to_u32(width)});
  dispatch.groups = spread_groups(c.device(), ceil_div(width, dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_centered_rows{"centered_rows", infer, flops, kernels, centered_rows_cases};

CenteredRows centered_rows(Graph& graph, std::string name, ValueId x, uint64_t first, uint64_t count,
                           bool transposed) {
  const auto outputs = graph.add(op_centered_rows, std::move(name), {x},
                                 {{"first", static_cast<int64_t>(first)},
                                  {"count", static_cast<int64_t>(count)},
                                  {"transposed", int64_t{transposed}}});
  return {outputs[0], outputs[1]};
}

}  // namespace vitrine
