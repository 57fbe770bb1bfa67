// What the optimisers share: their kernels go through tensors of one shape element by element, and leave
// the new numbers where the old ones were.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/graph/op.h"

namespace vitrine {

// Which elements decay where an optimiser isn't told: all.
inline constexpr uint64_t all_elements = ~uint64_t{0};

// The inputs of an optimiser: the parameters, their gradients, `moments` states that it keeps itself (each
// may be none), the step's words (shaders/lib/step_state.h), and a number that gradients are multiplied by,
// or none.
struct FlatUpdate {
  uint32_t moments = 0;
  static constexpr uint32_t param = 0, gradient = 1, first_moment = 2;
  uint32_t step() const { return first_moment + moments; }
  uint32_t scale() const { return step() + 1; }

  // Checks them all, and declares an output for the parameters and for each moment that there is.
  void infer(InferContext& context) const;
  // `quads`: the kernel for CPU-type devices, which moves 64 bits at a time.
  std::optional<std::string> refuses(const LowerContext& context, std::string_view shader, bool quads) const;
  // The one dispatch, given its constants but for the workgroup's size, and its parameters.
  Lowered lower(const LowerContext& context, Dispatch dispatch, std::string_view shader, bool quads) const;
};

// By what the step's learning rate is multiplied, and what a kernel is told of it. A factor of 1 is no
// attribute.
void set_rate_factor(Attributes& attributes, double factor);
float rate_factor_of(const LowerContext& context);

// The attribute for `decay_elements`, and what a kernel is told of it.
Attributes::Setting decay_setting(uint64_t decay_elements);
uint32_t decayed_elements(const LowerContext& context);

}  // namespace vitrine
