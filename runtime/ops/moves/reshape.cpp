#include "runtime/ops/moves/reshape.h"

#include <utility>
#include <vector>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/copy_runs.h"

namespace vitrine {
namespace {

// The dimensions are attributes, since they differ in number.
std::string dimension(size_t i) { return "d" + std::to_string(i); }

void infer(InferContext& c) {
  const Value& x = c.input(0);
  std::vector<uint64_t> dims;
  for (size_t i = 0; c.attributes().has(dimension(i)); ++i)
    dims.push_back(static_cast<uint64_t>(c.attributes().integer(dimension(i))));
  const Shape shape(dims);
  c.require(shape.elements() == x.shape.elements(),
            "x is " + x.shape.to_string() + " and has not as many elements as " + shape.to_string());
  c.output(shape, x.dtype);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "copy_runs", copy_variant(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  Lowered lowered;
  lowered.dispatches.push_back(copy_runs(c.device(), c.input(0).dtype, Operand::input(0), Operand::output(0),
                                         {.number = 1, .length = c.input(0).shape.elements()}));
  return lowered;
}

void backward(GradContext& c) {
  c.add(0, reshape(c.graph(), c.name("x"), c.gradient(0), c.input_value(0).shape));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_reshape{"reshape", infer, flops, kernels, reshape_cases, backward};

ValueId reshape(Graph& graph, std::string name, ValueId x, const Shape& shape) {
  if (graph.value(x).shape == shape) return x;
  Attributes attributes;
  for (size_t i = 0; i < shape.rank(); ++i)
    attributes.set(dimension(i), static_cast<int64_t>(shape[static_cast<int>(i)]));
  return graph.add(op_reshape, std::move(name), {x}, std::move(attributes))[0];
}

}  // namespace vitrine
