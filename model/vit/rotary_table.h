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
// head]: cosines, then sines. With rotary_class the class token's are the first.
Shape rotary_table_shape(const ViTConfig& config);

// What is learned of the angles, in the shapes below; else none.
struct LearnedAngles {
  std::span<const float> frequencies = {}, class_token = {};
};
std::vector<float> rotary_table(const ViTConfig& config, const LearnedAngles& learned, uint64_t block);

// For the first axis and for the second, in each block and head, the angle of a step: [2, depth, heads,
// pairs].
Shape frequencies_shape(const ViTConfig& config);

// The class token's angles: [pairs of a head].
Shape class_angles_shape(const ViTConfig& config);

// How long the periods of the first half of the pairs are, without the 2π of the centered: what files may
// hold of them.
std::vector<float> rotary_periods(const ViTConfig& config);

}  // namespace vitrine
