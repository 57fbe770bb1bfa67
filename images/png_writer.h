// PNG out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace vitrine {

// Writes a PNG of eight bits a channel: grey (1), red, green, blue (3), or those and alpha (4). The file
// appears whole or not at all. Error(failed) if it cannot be written, Error(usage) if the bytes are not
// width * height * channels.
void write_png(const std::filesystem::path& path, uint32_t width, uint32_t height, uint32_t channels,
               std::span<const uint8_t> bytes);

// The same in memory; `name` stands for it in messages.
std::vector<std::byte> png_of(uint32_t width, uint32_t height, uint32_t channels,
                              std::span<const uint8_t> bytes, const std::string& name);

}  // namespace vitrine
