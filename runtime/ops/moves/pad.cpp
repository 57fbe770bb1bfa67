#include "runtime/ops/moves/pad.h"

#include <utility>
#include <vector>

#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/copy_runs.h"
#include "shaders/moves/pad.h"

namespace vitrine {
namespace {

struct Place {
  int axis = 0;
  uint64_t begin = 0, size = 0;
};

template <typename Context>
Place place_of(const Context& c) {
  return {resolve_axis(c.input(0).shape, c.attributes().integer("axis")),
          static_cast<uint64_t>(c.attributes().integer("begin")),
          static_cast<uint64_t>(c.attributes().integer("size"))};
}

void infer(InferContext& c) {
  const Value& x = c.input(0);
  const Place place = place_of(c);
  c.require(place.axis >= 0, "axis " + std::to_string(c.attributes().integer("axis")) +
                                 " was asked for, x is " + x.shape.to_string());
  c.require(x.shape[place.axis] <= place.size && place.begin <= place.size - x.shape[place.axis],
            "x is " + x.shape.to_string() + " and does not fit into " + std::to_string(place.size) +
                " from " + std::to_string(place.begin) + " on");
  std::vector<uint64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims[static_cast<size_t>(place.axis)] = place.size;
  c.output(Shape(dims), x.dtype);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "pad", copy_variant(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const Place place = place_of(c);
  const AxisView view = view_axis(c.input(0).shape, place.axis);
  const uint64_t count = c.output(0).shape.elements();
  Lowered lowered;
  Dispatch& dispatch = lowered.dispatches.emplace_back();
  dispatch.shader = &find_shader("pad", copy_variant(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"run", to_u32(view.size * view.inner)},
                        {"longer", to_u32(place.size * view.inner)}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::PadParams{to_u32(count), to_u32(place.begin * view.inner)});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_pad{"pad", infer, flops, kernels, pad_cases};

ValueId pad(Graph& graph, std::string name, ValueId x, int axis, uint64_t begin, uint64_t size) {
  return graph.add(op_pad, std::move(name), {x},
                   {{"axis", int64_t{axis}},
                    {"begin", static_cast<int64_t>(begin)},
                    {"size", static_cast<int64_t>(size)}})[0];
}

}  // namespace vitrine
