#include "runtime/ops/elementwise/gated_product_gradient.h"

#include <utility>
#include <vector>

#include "runtime/ops/lowering.h"
#include "shaders/elementwise/gated_product.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value &dy = c.input(0), &x = c.input(1);
  c.require(is_computable(x.dtype) && dy.dtype == x.dtype, "dy is " + std::string(name_of(dy.dtype)) +
                                                               " and x " + std::string(name_of(x.dtype)) +
                                                               ", expected both f32 or both f16");
  std::vector<uint64_t> dims(dy.shape.dims().begin(), dy.shape.dims().end());
  if (!dims.empty()) dims.back() *= 2;
  c.require(
      !dims.empty() && x.shape == Shape(dims),
      "dy is " + dy.shape.to_string() + " and x " + x.shape.to_string() + ", expected [.., K] and [.., 2K]");
  c.output(x.shape, x.dtype);
}

double flops(const LowerContext& c) { return 3.0 * static_cast<double>(c.output(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) {
  return refuse(c, "gated_product_gradient", name_of(c.output(0).dtype));
}

Lowered lower(const LowerContext& c) {
  const Shape& dy = c.input(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("gated_product_gradient", name_of(c.output(0).dtype));
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"activation", to_u32(static_cast<uint64_t>(c.attributes().integer("activation")))},
                        {"width", to_u32(dy[-1])}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(shader::GatedProductParams{to_u32(dy.elements())});
  dispatch.groups = spread_groups(c.device(), ceil_div(dy.elements(), dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  lowered.in_place = {{0, 1}};
  return lowered;
}

std::optional<std::string> refuses_wide(const LowerContext& c) {
  if (auto reason = refuse(c, "gated_product_gradient_wide", name_of(c.input(0).dtype))) return reason;
  const uint64_t width = c.input(0).shape[-1];
  if (width % wide_run(c) != 0)
    return "rows of " + std::to_string(width) + " elements can't be moved 16 bytes at a time";
  return std::nullopt;
}

Lowered lower_as_wide(const LowerContext& c) {
  return lower_wide(c, lower(c), "gated_product_gradient_wide", name_of(c.input(0).dtype));
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower},
                                 {"wide", Target::any, refuses_wide, prefer_on_gpu, lower_as_wide}};

}  // namespace

const OpDef op_gated_product_gradient{"gated_product_gradient", infer, flops, kernels,
                                      gated_product_gradient_cases};

ValueId gated_product_gradient(Graph& graph, std::string name, ValueId dy, ValueId x, Activation activation) {
  return graph.add(op_gated_product_gradient, std::move(name), {dy, x},
                   {{"activation", static_cast<int64_t>(activation)}})[0];
}

}  // namespace vitrine
