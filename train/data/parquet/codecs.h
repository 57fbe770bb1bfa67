// The ways in which Parquet's pages are compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vitrine::parquet {

// As the format numbers them.
enum class Codec : uint8_t { none = 0, snappy = 1, gzip = 2, zstd = 6 };
// Of the names that codec_name() has for them.
bool is_known(int64_t codec);

// What a codec, an encoding or a type is called in the format, for messages.
std::string codec_name(int64_t codec);

// What is thrown for bytes that don't become what they are said to.
struct BadPage {
  std::string found, expected;
};

// Just `size` bytes. Memory is taken only where so few can become so many.
std::vector<std::byte> decompressed(Codec codec, std::span<const std::byte> bytes, uint64_t size);

}  // namespace vitrine::parquet
