// How much of a workgroup's shared memory a SPIR-V compute module takes, once its specialization constants
// have values. Vulkan doesn't say, and only some drivers do.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace vitrine {

// Bytes of all variables in Workgroup storage when constants 0..n-1 have these values; the driver may round
// them up. Nothing when an array's length, or a type, is of a kind that this reader doesn't know.
std::optional<uint64_t> shared_bytes_of(std::span<const uint32_t> words, std::span<const uint32_t> constants);

}  // namespace vitrine
