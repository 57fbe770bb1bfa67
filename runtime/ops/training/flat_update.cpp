#include "runtime/ops/training/flat_update.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/ops/lowering.h"
#include "shaders/lib/step_state.h"

namespace vitrine {

void FlatUpdate::infer(InferContext& c) const {
  const Shape shape = c.input(param).shape;
  for (uint32_t i = param; i < first_moment + moments; ++i) {
    if (i >= first_moment && !c.has_input(i)) continue;
    const Value& value = c.input(i);
    c.require(value.dtype == DType::f32 && value.shape == shape,
              "'" + value.name + "' is " + std::string(name_of(value.dtype)) + " " + value.shape.to_string() +
                  ", f32 " + shape.to_string() + " was expected");
  }
  const Value& words = c.input(step());
  c.require(words.dtype == DType::u32 && words.shape == Shape{VITRINE_STEP_WORDS},
            "the step is " + std::string(name_of(words.dtype)) + " " + words.shape.to_string() + ", u32 [" +
                std::to_string(VITRINE_STEP_WORDS) + "] was expected");
  if (c.has_input(scale())) {
    c.require(
        c.input(scale()).dtype == DType::f32,
        "the gradients' scale is " + std::string(name_of(c.input(scale()).dtype)) + ", f32 was expected");
  }
  const double decay = c.attributes().number("weight_decay");
  c.require(decay >= 0, "weight_decay is " + std::to_string(decay) + ", 0 or more was expected");
  c.output(shape, DType::f32);
  for (uint32_t i = 0; i < moments; ++i) {
    if (c.has_input(first_moment + i)) c.output(shape, DType::f32, "moment" + std::to_string(i + 1));
  }
}

std::optional<std::string> FlatUpdate::refuses(const LowerContext& c, std::string_view shader,
                                               bool quads) const {
  if (auto reason = refuse(c, shader, "f32")) return reason;
  if (!quads) return std::nullopt;
  for (uint32_t i = param; i < step(); ++i) {
    if (!c.has_input(i)) continue;
    if (auto reason = refuse_half_word(c.input(i))) return reason;
  }
  for (uint32_t i = 0; i < c.node().outputs.size(); ++i) {
    if (auto reason = refuse_half_word(c.output(i))) return reason;
  }
  return std::nullopt;
}

Lowered FlatUpdate::lower(const LowerContext& c, Dispatch dispatch, std::string_view shader,
                          bool quads) const {
  const uint64_t count = c.input(param).shape.elements();
  const uint32_t threads = workgroup_size(c.device(), 256);
  dispatch.shader = &find_shader(shader, "f32");
  dispatch.add_constants({{"local_size", threads}});
  for (uint32_t i = 0; i <= scale(); ++i) {
    dispatch.operands.push_back(c.has_input(i) ? Operand::input(i) : Operand::nothing());
  }
  Lowered lowered;
  uint32_t output = 0;
  for (uint32_t i = 0; i <= moments; ++i) {
    const uint32_t input = i == 0 ? param : first_moment + i - 1;
    dispatch.operands.push_back(c.has_input(input) ? Operand::output(output) : Operand::nothing());
    if (c.has_input(input)) lowered.in_place.emplace_back(output++, input);
  }
  dispatch.groups = spread_groups(c.device(), ceil_div(quads ? ceil_div(count, 4) : count, threads));
  lowered.dispatches.push_back(std::move(dispatch));
  return lowered;
}

void set_rate_factor(Attributes& attributes, double factor) {
  if (factor != 1) attributes.set("rate_factor", factor);
}

float rate_factor_of(const LowerContext& c) {
  return c.attributes().has("rate_factor") ? static_cast<float>(c.attributes().number("rate_factor")) : 1.0f;
}

Attributes::Setting decay_setting(uint64_t decay_elements) {
  return static_cast<int64_t>(
      std::min<uint64_t>(decay_elements, static_cast<uint64_t>(std::numeric_limits<int64_t>::max())));
}

uint32_t decayed_elements(const LowerContext& c) {
  return to_u32(std::min(static_cast<uint64_t>(c.attributes().integer("decay_elements")),
                         c.input(FlatUpdate::param).shape.elements()));
}

}  // namespace vitrine
