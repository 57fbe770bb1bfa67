#include "runtime/ops/elementwise/binary.h"

#include <algorithm>
#include <utility>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/elementwise/convert.h"
#include "runtime/ops/lowering.h"
#include "runtime/ops/moves/sum_rows.h"
#include "shaders/elementwise/binary.h"

namespace vitrine {
namespace {

bool ends_with(const Shape& shape, const Shape& end) {
  if (end.rank() == 0 || end.rank() > shape.rank()) return shape == end;
  return std::ranges::equal(shape.dims().last(end.dims().size()), end.dims());
}

void infer(InferContext& c) {
  const Value& a = c.input(0);
  const Value& b = c.input(1);
  c.require(ends_with(a.shape, b.shape),
            "the inputs are " + a.shape.to_string() + " and " + b.shape.to_string() +
                ", expected equal shapes, or the end of the first as the second");
  c.require(is_computable(a.dtype) && is_computable(b.dtype),
            "the inputs are " + std::string(name_of(a.dtype)) + " and " + std::string(name_of(b.dtype)) +
                ", expected f32 or f16");
  c.output(a.shape, a.dtype == b.dtype ? a.dtype : DType::f32);
}

double flops(const LowerContext& c) { return static_cast<double>(c.output(0).shape.elements()); }

std::string variant(const LowerContext& c) {
  return std::string(name_of(c.input(0).dtype)) + "_" + std::string(name_of(c.input(1).dtype));
}

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "binary", variant(c)); }

Lowered lower(const LowerContext& c) {
  const uint64_t count = c.output(0).shape.elements();
  Dispatch dispatch;
  dispatch.shader = &find_shader("binary", variant(c));
  const uint64_t repeated = c.input(1).shape.elements();
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"function", to_u32(static_cast<uint64_t>(c.attributes().integer("function")))},
                        {"period", repeated == count ? 0 : to_u32(repeated)}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  const double share = c.attributes().has("share") ? c.attributes().number("share") : 0;
  dispatch.set_params(shader::BinaryParams{to_u32(count), static_cast<float>(share)});
  dispatch.groups = spread_groups(c.device(), ceil_div(count, dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  for (const uint32_t i : {0u, 1u}) {
    if (c.input(i).dtype == c.output(0).dtype && c.input(i).shape.elements() == count)
      lowered.in_place.emplace_back(0, i);
  }
  return lowered;
}

// Where b repeats, each of its elements takes part in as many results: its gradient is summed over them.
void backward(GradContext& c) {
  Graph& graph = c.graph();
  const ValueId dy = c.gradient(0);
  const Shape shape = c.input_value(1).shape;
  const bool repeats = !(shape == c.input_value(0).shape);
  const int64_t function = c.attributes().integer("function");
  if (function == VITRINE_BINARY_MIX) c.refuse("a mix has no derivative");
  const bool product = function == VITRINE_BINARY_MULTIPLY;
  const auto as_input = [&](uint32_t i, const char* name, ValueId gradient) {
    return convert(graph, c.name(name), gradient, c.input_value(i).dtype);
  };
  if (c.wants(0)) {
    const ValueId da = product ? multiply(graph, c.name("a"), dy, c.input(1)) : dy;
    c.add(0, as_input(0, "a.convert", da));
  }
  if (c.wants(1)) {
    ValueId db = dy;
    if (repeats && product) {
      const DType dtype = graph.value(dy).dtype;
      db = sum_products(graph, c.name("b"), dy, convert(graph, c.name("a.wide"), c.input(0), dtype),
                        shape.rank());
    } else if (repeats) {
      db = sum_rows(graph, c.name("b"), dy, shape.rank());
    } else if (product) {
      db = multiply(graph, c.name("b"), dy, c.input(0));
    }
    c.add(1, as_input(1, "b.convert", db));
  }
}

std::optional<std::string> refuses_quads(const LowerContext& c) {
  return refuse_quads(c, "binary_cpu_quads", variant(c));
}

Lowered lower_quads(const LowerContext& c) {
  return lower_by_quads(c, lower(c), "binary_cpu_quads", variant(c));
}

std::optional<std::string> refuses_wide(const LowerContext& c) {
  if (auto reason = refuse(c, "binary_wide", variant(c))) return reason;
  const uint64_t repeated = c.input(1).shape.elements();
  if (repeated != c.output(0).shape.elements() && repeated % 4 != 0)
    return std::to_string(repeated) + " elements that repeat can't be moved by fours";
  return std::nullopt;
}

Lowered lower_as_wide(const LowerContext& c) { return lower_wide(c, lower(c), "binary_wide", variant(c)); }

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"wide", Target::any, refuses_wide, prefer_on_gpu, lower_as_wide},
                                 {"cpu_quads", Target::cpu, refuses_quads, prefer_on_cpu, lower_quads}};

}  // namespace

const OpDef op_binary{"binary", infer, flops, kernels, binary_cases, backward};

ValueId add(Graph& graph, std::string name, ValueId a, ValueId b) {
  return graph.add(op_binary, std::move(name), {a, b}, {{"function", VITRINE_BINARY_ADD}})[0];
}

ValueId sum_gradients(Graph& graph, std::string name, ValueId a, ValueId b) {
  return add(graph, std::move(name), a, b);
}

ValueId mix(Graph& graph, std::string name, ValueId a, ValueId b, double share) {
  return graph.add(op_binary, std::move(name), {a, b},
                   {{"function", VITRINE_BINARY_MIX}, {"share", share}})[0];
}

ValueId multiply(Graph& graph, std::string name, ValueId a, ValueId b) {
  return graph.add(op_binary, std::move(name), {a, b}, {{"function", VITRINE_BINARY_MULTIPLY}})[0];
}

}  // namespace vitrine
