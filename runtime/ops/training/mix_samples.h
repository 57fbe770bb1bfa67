// Mixup and cutmix: samples of a batch mixed with each other.
#pragma once

#include <string>
#include <vector>

#include "runtime/graph/op.h"

namespace vitrine {

extern const OpDef op_mix_samples;
std::vector<reference::OpCase> mix_samples_cases();

// samples [B, C, H, W] f32, mixing [B, VITRINE_MIX_WORDS] u32 (shaders/training/mix_samples.h). Gives
// [B, C, H, W] f32: inside of a sample's box its partner's pixels; outside own * x + other * partner's x,
// each product and the sum rounded, and x times nothing where other is 0. A partner of B or more, where one
// is looked at, is NaN. It has no derivative.
ValueId mix_samples(Graph& graph, std::string name, ValueId samples, ValueId mixing);

}  // namespace vitrine
