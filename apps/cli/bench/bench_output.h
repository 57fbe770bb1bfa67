// What vitrine bench feeds a model, and what it looks for in what comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrine::cli {

// Pixels as normalised images have them: standard normal, the same for every device.
void fill_images(std::span<std::byte> bytes, uint64_t seed);

double median_of(std::vector<double> values);

// FNV-1a.
uint64_t checksum_of(std::span<const std::byte> bytes);
// As bench prints it: 16 hexadecimal digits.
std::string checksum_text(uint64_t checksum);

// Throws Error(failed) when floats of the output are NaN or infinite; `label` says whose they are.
void require_finite(std::span<const std::byte> output, const std::string& label);

}  // namespace vitrine::cli
