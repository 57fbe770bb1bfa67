#include "runtime/ops/training/mix_samples.h"

#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/training/mix_samples.h"

namespace vitrine {
namespace {

void infer(InferContext& c) {
  const Value& samples = c.input(0);
  const Value& mixing = c.input(1);
  c.require(samples.dtype == DType::f32 && samples.shape.rank() == 4,
            "the samples are " + std::string(name_of(samples.dtype)) + " " + samples.shape.to_string() +
                ", f32 [samples, channels, height, width] was expected");
  c.require(mixing.dtype == DType::u32 && mixing.shape == Shape{samples.shape[0], VITRINE_MIX_WORDS},
            "how they are mixed is " + std::string(name_of(mixing.dtype)) + " " + mixing.shape.to_string() +
                ", u32 [" + std::to_string(samples.shape[0]) + ", " + std::to_string(VITRINE_MIX_WORDS) +
                "] was expected");
  c.output(samples.shape, DType::f32);
}

double flops(const LowerContext& c) { return 3.0 * static_cast<double>(c.output(0).shape.elements()); }

std::optional<std::string> refuses(const LowerContext& c) { return refuse(c, "mix_samples", "f32"); }

Lowered lower(const LowerContext& c) {
  const Shape& shape = c.output(0).shape;
  Dispatch dispatch;
  dispatch.shader = &find_shader("mix_samples", "f32");
  dispatch.constants = {{"local_size", workgroup_size(c.device(), 256)},
                        {"height", to_u32(shape[2])},
                        {"width", to_u32(shape[3])},
                        {"sample_elements", to_u32(shape.elements() / shape[0])}};
  dispatch.operands = {Operand::input(0), Operand::input(1), Operand::output(0)};
  dispatch.set_params(shader::MixSamplesParams{to_u32(shape.elements()), to_u32(shape[0])});
  dispatch.groups = spread_groups(c.device(), ceil_div(shape.elements(), dispatch.constant("local_size")));
  Lowered lowered;
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

constexpr KernelDef kernels[] = {{"simple", Target::any, refuses, no_preference, lower}};

}  // namespace

const OpDef op_mix_samples{"mix_samples", infer, flops, kernels, mix_samples_cases};

ValueId mix_samples(Graph& graph, std::string name, ValueId samples, ValueId mixing) {
  return graph.add(op_mix_samples, std::move(name), {samples, mixing})[0];
}

}  // namespace vitrine
