// The pictures of tests/images, and what Pillow makes of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "images/image.h"

namespace vitrine::test {

uint32_t crc32(std::span<const uint8_t> bytes);

// RGB bytes, as CRC-32s of sixteen bands of rows.
struct PictureDigest {
  uint32_t width = 0, height = 0;
  std::vector<uint32_t> bands;
};

struct Picture {
  std::string name;    // "jpeg_420.jpg"
  std::string covers;  // what it is there for
  PictureDigest rgb;
  PictureDigest turned;        // by its EXIF orientation; the same as rgb where it has none
  PictureDigest white;         // what is transparent on white; the same as rgb where nothing is
  uint32_t grey = 0;           // of convert("L")
  std::vector<uint8_t> bytes;  // RGB, of the smallest only
  std::filesystem::path path() const;
};
std::vector<Picture> pictures();

// A picture to cut: `whole` are the lengths at which nothing of it is missing.
struct Truncation {
  Picture picture;
  size_t lengths = 0;  // that were tried: every seventh, and the last twenty
  std::vector<size_t> whole;
};
std::vector<Truncation> truncations();

// Three bytes a pixel.
std::vector<uint8_t> rgb_bytes(const Image& image);

// Fails the running test where the image is not the one that the digest was made of.
void check_picture(const Image& image, const PictureDigest& expected);

}  // namespace vitrine::test
