// Parameters as floats on the host, wherever they come from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/vit/parameters.h"
#include "runtime/graph/constants.h"

namespace vitrine {

// A parameter of the source's, stored as F32, F16 or BF16; `values` has room for exactly it.
void read_floats(ConstantSource& source, const Parameter& parameter, std::span<float> values);

// Tells sets of parameters apart: a checksum of their values.
uint64_t checksum_of(ConstantSource& source, std::span<const Parameter> parameters);

}  // namespace vitrine
