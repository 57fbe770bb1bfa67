// A picture in memory, and how a file becomes one: exactly the bytes that Pillow's
// Image.open(path).convert("RGB") has, for JPEG, PNG and WebP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace vitrine {

// Rows from top to bottom, four bytes a pixel: red, green, blue, 255. Read as little-endian 32-bit
// numbers, red is in the lowest byte.
struct Image {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> pixels;

  uint64_t pixel_count() const { return uint64_t{width} * height; }
};

struct DecodeOptions {
  // Turns the picture as its EXIF orientation says, like Pillow's ImageOps.exif_transpose. Off, as in
  // Pillow's Image.open: models are published with pictures that nobody turned.
  bool exif = false;
  // Where a PNG names one color as transparent, pixels of that color become white, as transformers 5 has it
  // where a processor converts pictures to RGB. Off, as Pillow's convert("RGB") alone has it.
  bool white = false;
  // Refused from the header alone, before memory is taken. The default is where Pillow raises
  // DecompressionBombError.
  uint64_t max_pixels = 178'956'970;
};

// The format is recognised by the content, not by the name. Of an animation the first frame is taken,
// and alpha is dropped, not blended (but see DecodeOptions::white). Error(failed) with one sentence that
// names the file if it cannot be read, is no picture, too large, truncated or broken.
Image decode_image(const std::filesystem::path& path, const DecodeOptions& options = {});

// The same for a file that is in memory already; `name` stands for it in messages.
Image decode_image(std::span<const std::byte> file, const std::string& name,
                   const DecodeOptions& options = {});

// A rectangle of a picture.
struct ImageArea {
  uint32_t top = 0, left = 0, height = 0, width = 0;
};
// Told a picture's size, which rectangle of it is going to be looked at.
using ChooseArea = std::function<ImageArea(uint32_t height, uint32_t width)>;

// A picture, or what there is of one: the rectangle that begins at this pixel of it.
struct ImagePart {
  Image image;
  uint32_t top = 0, left = 0;
};

// At least that rectangle of the picture, with the bytes that decode_image() has there: of a JPEG what lies
// around it is left out where it can be, which is quicker, and nobody learns then what is broken below it.
// `choose` is called once. `memory` is for the pixels, where they are a JPEG's.
ImagePart decode_part(std::span<const std::byte> file, const std::string& name, const DecodeOptions& options,
                      const ChooseArea& choose, std::vector<uint8_t> memory = {});

// The whole file, or its beginning if that is no picture's. Error(failed) if it cannot be read or is too
// large for a picture.
std::vector<std::byte> read_picture_file(const std::filesystem::path& path);

// A picture as its file stores it, and how the file's EXIF data asks to turn it (turned() of images/exif.h):
// 1 to 8, 1 where it says nothing.
struct Decoded {
  Image image;
  int orientation = 1;
};
// The same whatever options.exif says.
Decoded decode_stored(const std::filesystem::path& path, DecodeOptions options = {});

// One byte a pixel, as Pillow's convert("L") makes them: for models that see one channel.
std::vector<uint8_t> grey_from_rgb(const Image& image);
// Has red, green and blue of every pixel hold that byte.
void make_grey(Image& image);

}  // namespace vitrine
