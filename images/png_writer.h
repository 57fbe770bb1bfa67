// PNG out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace vitrine {

// Writes a PNG of eight bits a channel: grey (1), red, green, blue (3), or those and alpha (4). The file
// appears whole or not at all. Error(failed) if it cannot be written, Error(usage) if the bytes are not
// width * height * channels.
void write_png(const std::filesystem::path& path, uint32_t width, uint32_t height, uint32_t channels,
               std::span<const uint8_t> bytes);

}  // namespace vitrine
