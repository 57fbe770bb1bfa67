// Picture operations as plain loops in the machine's own floats and doubles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ops/pictures/picture_operation.h"

namespace vitrine::reference {

// What each byte becomes, the channels' one a byte of 256 words; empty for kinds that have no table.
std::vector<uint32_t> operation_table(const PictureOperation& operation, std::span<const uint32_t> pixels);

// The picture after the operation.
std::vector<uint32_t> operation_result(const PictureOperation& operation, std::span<const uint32_t> pixels,
                                       uint32_t width, uint32_t height);

}  // namespace vitrine::reference
