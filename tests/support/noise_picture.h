// Pictures that look the same on every machine, and hashes of what is made of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrine::test {

// A picture of its own for every seed and size, the same on every machine and in
// tests/parity/noise_pictures.py.
std::vector<uint32_t> noise_picture(uint64_t seed, uint32_t width, uint32_t height);

// FNV-1a with 64 bits, as sixteen hexadecimal digits: noise_pictures.py's fnv().
std::string fnv(std::span<const std::byte> bytes);
// Red, green and blue of every pixel.
std::vector<uint8_t> rgb_of(std::span<const uint32_t> pixels);

}  // namespace vitrine::test
