#include "runtime/ops/moves/concat.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/copy_runs.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& first = c.input(0);
  const int axis = resolve_axis(first.shape, c.attributes().integer("axis"));
  c.require(axis >= 0, "axis " + std::to_string(c.attributes().integer("axis")) +
                           " was asked for, the first part is " + first.shape.to_string());
  std::vector<uint64_t> dims(first.shape.dims().begin(), first.shape.dims().end());
  uint64_t& joined = dims[static_cast<size_t>(axis)];
  for (size_t i = 1; i < c.input_count(); ++i) {
    const Value& part = c.input(i);
    bool fits = part.dtype == first.dtype && part.shape.rank() == first.shape.rank();
    for (int d = 0; fits && d < static_cast<int>(dims.size()); ++d) {
      fits = d == axis || part.shape[d] == first.shape[d];
    }
    c.require(fits, "part " + std::to_string(i) + " is " + std::string(name_of(part.dtype)) + " " +
                        part.shape.to_string() + ", which does not continue " +
                        std::string(name_of(first.dtype)) + " " + first.shape.to_string() + " along axis " +
                        std::to_string(axis));
    joined += part.shape[axis];
  }
  c.output(Shape(dims), first.dtype);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "copy_runs", copy_variant(c.input(0).dtype));
}

// A dispatch a part: each writes its own runs of the result.
Lowered lower(const LowerContext& c) {
  const Shape& result = c.output(0).shape;
  const int axis = resolve_axis(result, c.attributes().integer("axis"));
  const AxisView whole = view_axis(result, axis);
  Lowered lowered;
  uint64_t at = 0;
  for (uint32_t i = 0; i < c.node().inputs.size(); ++i) {
    Runs runs;
    runs.number = whole.outer;
    runs.length = c.input(i).shape[axis] * whole.inner;
    runs.from_stride = runs.length;
    runs.to = at;
    runs.to_stride = whole.size * whole.inner;
    at += runs.length;
    lowered.dispatches.push_back(
        copy_runs(c.device(), c.output(0).dtype, Operand::input(i), Operand::output(0), runs));
  }
  return lowered;
}

void backward(GradContext& c) {
  const int axis = resolve_axis(c.output_value(0).shape, c.attributes().integer("axis"));
  uint64_t at = 0;
  for (size_t i = 0; i < c.node().inputs.size(); ++i) {
    const uint64_t size = c.input_value(i).shape[axis];
    if (c.wants(i))
      c.add(i, slice(c.graph(), c.name("part" + std::to_string(i)), c.gradient(0), axis, at, at + size));
    at += size;
  }
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_concat{"concat", infer, flops, kernels, concat_cases, backward};

ValueId concat(Graph& graph, std::string name, std::vector<ValueId> parts, int axis) {
  if (parts.empty()) throw Error(ErrorCode::usage, "concat '" + name + "': there are no parts");
  return graph.add(op_concat, std::move(name), std::move(parts), {{"axis", int64_t{axis}}})[0];
}

}  // namespace vitrine
