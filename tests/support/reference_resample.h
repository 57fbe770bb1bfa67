// The two passes of a resize as plain loops over what resample_table.h describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/ops/pictures/resample_table.h"

namespace vitrine::test {

// What the device's memory holds where nothing was written (op_test.cpp fills it).
constexpr uint32_t unwritten_word = 0x7fcd7fcd;

// A picture of its own for every seed and size, the same on every machine and in
// tests/parity/noise_pictures.py.
std::vector<uint32_t> noise_picture(uint64_t seed, uint32_t width, uint32_t height);

// FNV-1a with 64 bits, as sixteen hexadecimal digits: noise_pictures.py's fnv().
std::string fnv(std::span<const std::byte> bytes);
// Red, green and blue of every pixel.
std::vector<uint8_t> rgb_of(std::span<const uint32_t> pixels);

// [blocks * 64, columns]: the rows of all pictures, unwritten_word elsewhere.
std::vector<uint32_t> reference_rows(std::span<const ResamplePicture> pictures,
                                     std::span<const uint32_t> pixels, uint64_t blocks);
// [pictures, rows, columns] from that.
std::vector<uint32_t> reference_columns(std::span<const ResamplePicture> pictures,
                                        std::span<const uint32_t> x);

}  // namespace vitrine::test
