#include "runtime/ops/elementwise/gated_product.h"

#include <utility>
#include <vector>

#include "runtime/graph/autodiff.h"
#include "runtime/ops/elementwise/gated_product_gradient.h"
#include "runtime/ops/lowering.h"
#include "shaders/elementwise/gated_product.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& x = c.input(0);
  c.require(is_computable(x.dtype), "x is " + std::string(name_of(x.dtype)) + ", expected f32 or f16");
  c.require(x.shape.rank() >= 1 && x.shape[-1] % 2 == 0,
            "x is " + x.shape.to_string() + ", expected an even last dimension");
  std::vector<uint64_t> dims(x.shape.dims().begin(), x.shape.dims().end());
  dims.back() /= 2;
  c.output(Shape(dims), x.dtype);
}

double flops(const LowerContext& c) { return 2.0 * static_cast<double>(c.output(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "gated_product", name_of(c.input(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const Shape& result = c.output(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("gated_product", name_of(c.input(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"activation", to_u32(static_cast<uint64_t>(c.attributes().integer("activation")))},
                        {"width", to_u32(result[-1])}};
  dispatch.operands = {Operand::input(0), Operand::output(0)};
  dispatch.set_params(shader::GatedProductParams{to_u32(result.elements())});
  dispatch.groups = spread_groups(c.device(), ceil_div(result.elements(), dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

void backward(GradContext& c) {
  c.add(0, gated_product_gradient(c.graph(), c.name("x"), c.gradient(0), c.input(0),
                                  static_cast<Activation>(c.attributes().integer("activation"))));
}

std::optional<std::string> refuses_wide(const LowerContext& c) {
  if (auto reason = refuse(c, "gated_product_wide", name_of(c.input(0).dtype))) return reason;
  const uint64_t width = c.output(0).shape[-1];
  if (width % wide_run(c) != 0)
    return "rows of " + std::to_string(width) + " elements can't be moved 16 bytes at a time";
  return std::nullopt;
}

Lowered lower_as_wide(const LowerContext& c) {
  return lower_wide(c, lower(c), "gated_product_wide", name_of(c.input(0).dtype));
}

std::optional<std::string> refuses_quads(const LowerContext& c) {
  if (c.output(0).shape[-1] % 4 != 0)
    return "rows of " + std::to_string(c.output(0).shape[-1]) + " elements can't be moved by fours";
  return refuse_quads(c, "gated_product_cpu_quads", name_of(c.input(0).dtype));
}

Lowered lower_quads(const LowerContext& c) {
  return lower_by_quads(c, lower(c), "gated_product_cpu_quads", name_of(c.input(0).dtype));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"wide", Target::any, refuses_wide, prefer_on_gpu, lower_as_wide},
                                 {"cpu_quads", Target::cpu, refuses_quads, prefer_on_cpu, lower_quads}};

}  // namespace

const OpDef op_gated_product{"gated_product", infer, flops, kernels, gated_product_cases, backward};

ValueId gated_product(Graph& graph, std::string name, ValueId x, Activation activation) {
  return graph.add(op_gated_product, std::move(name), {x},
                   {{"activation", static_cast<int64_t>(activation)}})[0];
}

}  // namespace vitrine
