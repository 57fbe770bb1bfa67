#include "runtime/ops/pictures/byte_values.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/pictures/byte_values.h"

namespace vitrine {
namespace {

uint64_t attribute(const InferContext& c, std::string_view name) {
  return static_cast<uint64_t>(c.attributes().integer(name));
}

void infer(InferContext& c) {
  const Value& bytes = c.input(0);
  const Value& values = c.input(1);
  c.require(values.dtype == DType::f32 && values.shape.rank() == 2 && values.shape[1] == 256,
            "the values are " + std::string(name_of(values.dtype)) + " " + values.shape.to_string() +
                ", expected f32 [channels, 256]");
  const Shape result{attribute(c, "pictures"), values.shape[0], attribute(c, "height"),
                     attribute(c, "width")};
  const uint64_t words = ceil_div(result.elements(), 4);
  c.require(bytes.dtype == DType::u32 && bytes.shape == Shape{words},
            "the bytes are " + std::string(name_of(bytes.dtype)) + " " + bytes.shape.to_string() +
                ", expected u32 [" + std::to_string(words) + "] for " + result.to_string());
  c.output(result, DType::f32);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "byte_values", "f32"); }

Lowered lower(const LowerContext& c) {
  const Shape& result = c.output(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("byte_values", "f32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"channels", to_u32(result[1])},
                        {"picture_pixels", to_u32(result[2] * result[3])}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(shader::ByteValuesParams{to_u32(result.elements())});
  dispatch.groups = spread_groups(c.device(), ceil_div(result.elements(), dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_byte_values{"byte_values", infer, flops, kernels, byte_values_cases};

ValueId byte_values(Graph& graph, std::string name, ValueId bytes, ValueId values,
                    const BytePictures& pictures) {
  return graph.add(op_byte_values, std::move(name), {bytes, values},
                   {{"pictures", static_cast<int64_t>(pictures.pictures)},
                    {"height", static_cast<int64_t>(pictures.height)},
                    {"width", static_cast<int64_t>(pictures.width)}})[0];
}

}  // namespace vitrine
