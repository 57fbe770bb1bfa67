// The share of a differential attention's second softmax.
#pragma once

#include <cstdint>
#include <span>

namespace vitrine {

// What it begins at in this block: 0.8 - 0.6 exp(-0.3 block).
double first_lambda(uint64_t block);

// exp(q1 . k1) - exp(q2 . k2) + first_lambda(block).
double lambda_of(std::span<const float> q1, std::span<const float> k1, std::span<const float> q2,
                 std::span<const float> k2, uint64_t block);

}  // namespace vitrine
