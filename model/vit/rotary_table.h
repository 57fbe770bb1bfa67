// The angles of rotary positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/vit/vit_config.h"
#include "runtime/graph/tensor.h"

namespace vitrine {

// A patch's place along an axis of n is its number + rotary_offset; with a reference times reference / n;
// where they are centered 2π (2 (number + 1/2 + rotary_offset) / n - 1).

// Of one block [patches, 2, pairs of a head], or where angles are learned [heads, patches, 2, pairs of a
// head]: cosines, then sines.
Shape rotary_table_shape(const ViTConfig& config);

// `frequencies` as frequencies_shape() has them, where they are learned; else none.
std::vector<float> rotary_table(const ViTConfig& config, std::span<const float> frequencies, uint64_t block);

// For the first axis and for the second, in each block and head, the angle of a step: [2, depth, heads,
// pairs].
Shape frequencies_shape(const ViTConfig& config);

// How long the periods of the pairs are, without the 2π of the centered: what files may hold of them.
std::vector<float> rotary_periods(const ViTConfig& config);

}  // namespace vitrine
