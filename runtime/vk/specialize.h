// A SPIR-V compute module whose specialization constants have become ordinary ones, for drivers that make
// less of the former.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrine {

// With these values for constants 0..n-1, and their defaults for all others. What is computed from them is
// there as its value, too; where that can't be told it is still computed, from ordinary constants. Loops that
// are to be unrolled and decide anything in their bodies, once constants have their values, are left rolled:
// SwiftShader takes the longer for a kernel the more decisions it has, and with 36 of them in line for ever.
std::vector<uint32_t> specialize(std::span<const uint32_t> words, std::span<const uint32_t> constants);

}  // namespace vitrine
