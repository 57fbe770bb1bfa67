#include "images/exif.h"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace vitrine {
namespace {

constexpr uint32_t orientation_tag = 0x0112;

// Numbers of a TIFF file, in its byte order; nothing past its end.
class Tiff {
 public:
  explicit Tiff(std::span<const std::byte> bytes) : bytes_(bytes), little_(at(0) == 'I') {}

  std::optional<uint32_t> number(uint64_t offset, unsigned size) const {
    if (bytes_.size() < size || offset > bytes_.size() - size) return std::nullopt;
    uint32_t value = 0;
    for (unsigned i = 0; i < size; i++) value = value << 8 | at(offset + (little_ ? size - 1 - i : i));
    return value;
  }

 private:
  uint32_t at(uint64_t offset) const { return std::to_integer<uint32_t>(bytes_[offset]); }

  std::span<const std::byte> bytes_;
  bool little_;
};

}  // namespace

int exif_orientation(std::span<const std::byte> block) {
  constexpr std::string_view prefix("Exif\0\0", 6);
  while (block.size() >= prefix.size() && std::memcmp(block.data(), prefix.data(), prefix.size()) == 0) {
    block = block.subspan(prefix.size());
  }
  if (block.size() < 8) return 1;
  if (std::memcmp(block.data(), "II*\0", 4) != 0 && std::memcmp(block.data(), "MM\0*", 4) != 0) return 1;
  const Tiff tiff(block);
  const uint64_t directory = *tiff.number(4, 4);
  const uint32_t entries = tiff.number(directory, 2).value_or(0);
  for (uint32_t i = 0; i < entries; i++) {
    // Tag, type, number of values, and the value itself where it fits into four bytes.
    const uint64_t entry = directory + 2 + uint64_t{12} * i;
    if (!tiff.number(entry + 8, 4)) break;
    if (tiff.number(entry, 2) != orientation_tag || tiff.number(entry + 4, 4) != 1u) continue;
    const uint32_t type = *tiff.number(entry + 2, 2);
    const bool is_short = type == 3 || type == 8;
    if (!is_short && type != 4 && type != 9) return 1;
    const uint32_t value = *tiff.number(entry + 8, is_short ? 2 : 4);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image turned(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  // Bits of what to do with the source's coordinates: EXIF numbers the eight ways of placing a picture.
  const bool swap = orientation >= 5;
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image result{.width = swap ? image.height : image.width,
               .height = swap ? image.width : image.height,
               .pixels = std::vector<uint8_t>(image.pixels.size())};
  uint8_t* to = result.pixels.data();
  for (uint32_t y = 0; y < result.height; y++) {
    for (uint32_t x = 0; x < result.width; x++, to += 4) {
      uint32_t from_x = swap ? y : x, from_y = swap ? x : y;
      if (flip_x) from_x = image.width - 1 - from_x;
      if (flip_y) from_y = image.height - 1 - from_y;
      std::memcpy(to, image.pixels.data() + (uint64_t{from_y} * image.width + from_x) * 4, 4);
    }
  }
  return result;
}

}  // namespace vitrine
