#include "runtime/ops/moves/repeat.h"

#include <utility>
#include <vector>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/copy_runs.h"
#include "runtime/ops/moves/sum_rows.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  const int64_t count = c.attributes().integer("count");
  c.require(count > 0, std::to_string(count) + " copies were asked for, expected at least one");
  c.require(x.shape.rank() < Shape::max_rank, "x is " + x.shape.to_string() + ", expected at most " +
                                                  std::to_string(Shape::max_rank - 1) + " dimensions");
  std::vector<uint64_t> dims{static_cast<uint64_t>(count)};
  if (c.attributes().flag("as_token")) {
    c.require(x.shape.rank() == 1, "x is " + x.shape.to_string() + ", expected one token [D]");
    dims.push_back(1);
  }
  dims.insert(dims.end(), x.shape.dims().begin(), x.shape.dims().end());
  c.output(Shape(dims), x.dtype);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "copy_runs", copy_variant(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  Runs runs;
  runs.number = c.output(0).shape[0];
  runs.length = c.input(0).shape.elements();
  runs.from_stride = 0;
  runs.to_stride = runs.length;
  Lowered lowered;
  lowered.dispatches.push_back(
      copy_runs(c.device(), c.input(0).dtype, Operand::input(0), Operand::output(0), runs));
  return lowered;
}

void backward(GradContext& c) {
  const Value& x = c.input_value(0);
  const ValueId sum = sum_rows(c.graph(), c.name("x"), c.gradient(0), x.shape.rank());
  c.add(0, convert(c.graph(), c.name("convert"), sum, x.dtype));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_repeat{"repeat", infer, flops, kernels, repeat_cases, backward};

ValueId repeat(Graph& graph, std::string name, ValueId x, uint64_t count) {
  return graph.add(op_repeat, std::move(name), {x}, {{"count", static_cast<int64_t>(count)}})[0];
}

ValueId repeat_tokens(Graph& graph, std::string name, ValueId x, uint64_t count) {
  if (graph.value(x).shape.rank() != 1) return repeat(graph, std::move(name), x, count);
  return graph.add(op_repeat, std::move(name), {x},
                   {{"count", static_cast<int64_t>(count)}, {"as_token", int64_t{1}}})[0];
}

}  // namespace vitrine
