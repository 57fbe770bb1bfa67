#include "runtime/ops/training/erase_boxes.h"

#include <utility>

#include "runtime/ops/elementwise/dropout.h"
#include "runtime/ops/lowering.h"
#include "shaders/training/erase_boxes.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& samples = c.input(0);
  const Value& boxes = c.input(1);
  c.require(samples.dtype == DType::f32 && samples.shape.rank() == 4,
            "the samples are " + std::string(name_of(samples.dtype)) + " " + samples.shape.to_string() +
                ", f32 [samples, channels, height, width] was expected");
  c.require(boxes.dtype == DType::u32 && boxes.shape.rank() == 3 && boxes.shape[0] == samples.shape[0] &&
                boxes.shape[1] >= 1 && boxes.shape[2] == VITRINE_BOX_WORDS,
            "the boxes are " + std::string(name_of(boxes.dtype)) + " " + boxes.shape.to_string() + ", u32 [" +
                std::to_string(samples.shape[0]) + ", boxes, " + std::to_string(VITRINE_BOX_WORDS) +
                "] was expected");
  require_step(c, 2);
  const int64_t fill = c.attributes().integer("fill");
  c.require(fill >= VITRINE_ERASE_CONST && fill <= VITRINE_ERASE_PIXEL,
            "a fill of " + std::to_string(fill) + " was asked for, 0 to 2 was expected");
  c.output(samples.shape, DType::f32);
}

double flops(const LowerContext&) { return 0; }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "erase_boxes", "f32"); }

Lowered lower(const LowerContext& c) {
  const Shape& shape = c.output(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("erase_boxes", "f32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"height", to_u32(shape[2])},
                        {"width", to_u32(shape[3])},
                        {"sample_elements", to_u32(shape.elements() / shape[0])},
                        {"boxes", to_u32(c.input(1).shape[1])},
                        {"fill", to_u32(static_cast<uint64_t>(c.attributes().integer("fill")))}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::input(2), Operand::output(0)};
  dispatch.set_params(shader::EraseBoxesParams{
      to_u32(shape.elements()), to_u32(static_cast<uint64_t>(c.attributes().integer("stream")))});
  dispatch.groups = spread_groups(c.device(), ceil_div(shape.elements(), dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  lowered.in_place = {{0, 0}};
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_erase_boxes{"erase_boxes", infer, flops, kernels, erase_boxes_cases};

ValueId erase_boxes(Graph& graph, std::string name, ValueId samples, ValueId boxes, ValueId step,
                    const EraseBoxesOptions& options) {
  return graph.add(op_erase_boxes, std::move(name), {samples, boxes, step},
                   {{"fill", int64_t{options.fill}}, {"stream", int64_t{options.stream}}})[0];
}

}  // namespace vitrine
