#include "runtime/ops/moves/slice.h"

#include <utility>
#include <vector>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/copy_runs.h"
#include "runtime/ops/moves/pad.h"

namespace vitrine {
namespace {

struct Range {
  int axis = 0;
  uint64_t begin = 0, end = 0;
};

template <typename Context>
Range range_of(const Context& c) {
  return {resolve_axis(c.input(0).shape, c.attributes().integer("axis")),
          static_cast<uint64_t>(c.attributes().integer("begin")),
          static_cast<uint64_t>(c.attributes().integer("end"))};
}

void infer(InferContext& c) {
  const Value& x = c.input(0);
  const Range range = range_of(c);
  c.require(range.axis >= 0, "axis " + std::to_string(c.attributes().integer("axis")) +
                                 " was asked for, x is " + x.shape.to_string());
  c.require(range.begin < range.end && range.end <= x.shape[range.axis],
            "the range " + std::to_string(range.begin) + " to " + std::to_string(range.end) + " of axis " +
                std::to_string(range.axis) + " was asked for, x is " + x.shape.to_string());
  std::vector<uint64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims[static_cast<size_t>(range.axis)] = range.end - range.begin;
  c.output(Shape(dims), x.dtype);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "copy_runs", copy_variant(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const Range range = range_of(c);
  const AxisView view = view_axis(c.input(0).shape, range.axis);
  Runs runs;
  runs.number = view.outer;
  runs.length = (range.end - range.begin) * view.inner;
  runs.from = range.begin * view.inner;
  runs.from_stride = view.size * view.inner;
  runs.to_stride = runs.length;
  Lowered lowered;
  lowered.dispatches.push_back(
      copy_runs(c.device(), c.input(0).dtype, Operand::input(0), Operand::output(0), runs));
  return lowered;
}

void backward(GradContext& c) {
  const Shape& x = c.input_value(0).shape;
  const int axis = resolve_axis(x, c.attributes().integer("axis"));
  c.add(0, pad(c.graph(), c.name("x"), c.gradient(0), axis,
               static_cast<uint64_t>(c.attributes().integer("begin")), x[axis]));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_slice{"slice", infer, flops, kernels, slice_cases, backward};

ValueId slice(Graph& graph, std::string name, ValueId x, int axis, uint64_t begin, uint64_t end) {
  return graph.add(op_slice, std::move(name), {x},
                   {{"axis", int64_t{axis}},
                    {"begin", static_cast<int64_t>(begin)},
                    {"end", static_cast<int64_t>(end)}})[0];
}

}  // namespace vitrine
