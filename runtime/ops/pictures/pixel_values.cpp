#include "runtime/ops/pictures/pixel_values.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/pictures/pixel_values.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& pixels = c.input(0);
  const Value& values = c.input(1);
  c.require(pixels.dtype == DType::u32 && pixels.shape.rank() == 3,
            "the pixels are " + std::string(name_of(pixels.dtype)) + " " + pixels.shape.to_string() +
                ", expected u32 [pictures, height, width]");
  c.require(values.dtype == DType::f32 && values.shape.rank() == 2 && values.shape[0] >= 1 &&
                values.shape[0] <= 4 && values.shape[1] == 256,
            "the values are " + std::string(name_of(values.dtype)) + " " + values.shape.to_string() +
                ", expected f32 [channels, 256] with at most 4 channels");
  c.output({pixels.shape[0], values.shape[0], pixels.shape[1], pixels.shape[2]}, DType::f32);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "pixel_values", "f32"); }

Lowered lower(const LowerContext& c) {
  const Shape& pixels = c.input(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("pixel_values", "f32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"channels", to_u32(c.output(0).shape[1])},
                        {"picture_pixels", to_u32(pixels[1] * pixels[2])}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(shader::PixelValuesParams{to_u32(pixels.elements())});
  dispatch.groups = spread_groups(c.device(), ceil_div(pixels.elements(), dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_pixel_values{"pixel_values", infer, flops, kernels, pixel_values_cases};

ValueId pixel_values(Graph& graph, std::string name, ValueId pixels, ValueId values) {
  return graph.add(op_pixel_values, std::move(name), {pixels, values})[0];
}

}  // namespace vitrine
