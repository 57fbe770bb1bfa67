#include "runtime/ops/elementwise/convert.h"

#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/graph/conversion.h"
#include "runtime/ops/lowering.h"
#include "runtime/util/error.h"
#include "shaders/elementwise/convert.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  const auto to = static_cast<DType>(c.attributes().integer("to"));
  c.require(x.dtype != DType::u32 && to != DType::u32 && x.dtype != to,
            "can't convert " + std::string(name_of(x.dtype)) + " to " + std::string(name_of(to)) +
                ", only between f32, f16 and bf16");
  c.output(x.shape, to);
}

double flops(const LowerContext&) { return 0; }

std::string variant(const LowerContext& c) { return storage_variant(c.input(0).dtype, c.output(0).dtype); }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "convert", variant(c)); }

Lowered lower(const LowerContext& c) {
  const uint64_t count = c.output(0).shape.elements();
  Dispatch dispatch;
  dispatch.shader = &find_shader("convert", variant(c));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::ConvertParams{to_u32(count)});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  if (size_of(c.input(0).dtype) == size_of(c.output(0).dtype)) lowered.in_place = {{0, 0}};
  return lowered;
}

void backward(GradContext& c) {
  c.add(0, convert(c.graph(), c.name("x"), c.gradient(0), c.input_value(0).dtype));
}

std::optional<std::string> refuses_wide(const LowerContext& c) {
  return refuse(c, "convert_wide", variant(c));
}

Lowered lower_as_wide(const LowerContext& c) { return lower_wide(c, lower(c), "convert_wide", variant(c)); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"wide", Target::any, refuses_wide, prefer_on_gpu, lower_as_wide}};

}  // namespace

const OpDef op_convert{"convert", infer, flops, kernels, convert_cases, backward};

ValueId convert(Graph& graph, std::string name, ValueId x, DType to) {
  if (graph.value(x).dtype == to) return x;
  return graph.add(op_convert, std::move(name), {x}, {{"to", static_cast<int64_t>(to)}})[0];
}

Lowered lower_conversion(DType from, DType to, uint64_t elements, const Capabilities& device) {
  Graph graph;
  convert(graph, "conversion", graph.input("source", Shape{elements}, from), to);
  const LowerContext context(graph, graph.nodes().front(), device);
  const auto require = [&](const std::optional<std::string>& reason) {
    if (!reason) return;
    throw Error(ErrorCode::failed, "this device can't convert " + std::string(name_of(from)) + " to " +
                                       std::string(name_of(to)) + ": " + *reason);
  };
  require(refuses(context));
  Lowered lowered = lower(context);
  for (const Dispatch& dispatch : lowered.dispatches) {
    if (const auto excess = excess_groups(device, dispatch))
      require("for " + std::to_string(elements) + " elements it " + *excess);
  }
  return lowered;
}

}  // namespace vitrine
