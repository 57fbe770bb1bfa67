// Conversion of what belongs to no graph: constants on their way to the device.
#pragma once

#include "runtime/graph/op.h"

namespace vitrine {

// What it takes to convert `elements` values: input 0 to output 0. Throws Error(failed) where the device can't.
// The operator of conversion defines it (runtime/ops/elementwise/convert.cpp).
Lowered lower_conversion(DType from, DType to, uint64_t elements, const Capabilities& device);

}  // namespace vitrine
