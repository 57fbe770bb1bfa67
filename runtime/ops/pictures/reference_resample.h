// The two passes of a resize as plain loops over what resample_table.h describes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ops/pictures/resample_table.h"

namespace vitrine::reference {

// [blocks * 64, columns]: the rows of all pictures, unwritten_word elsewhere.
std::vector<uint32_t> resample_rows(std::span<const ResamplePicture> pictures,
                                    std::span<const uint32_t> pixels, uint64_t blocks);
// [pictures, rows, columns] from that.
std::vector<uint32_t> resample_columns(std::span<const ResamplePicture> pictures,
                                       std::span<const uint32_t> x);

}  // namespace vitrine::reference
