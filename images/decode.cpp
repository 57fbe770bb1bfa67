// From a file to a picture: reads it, recognises its format, hands it to the format's decoder.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "images/decoders.h"
#include "images/exif.h"
#include "images/image.h"
#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

// No picture within the default cap needs more: eight bytes a pixel uncompressed, and some metadata.
constexpr uint64_t largest_file = uint64_t{3} << 29;

// Enough of a file to recognise its format, and to quote.
constexpr uint64_t telling_bytes = 64;

// What else people have in their folders, so that the message can say what it is.
std::string_view other_format(std::string_view start) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> known{{
      {"GIF8", "a GIF"},
      {"BM", "a BMP"},
      {std::string_view("II*\0", 4), "a TIFF"},
      {std::string_view("MM\0*", 4), "a TIFF"},
      {std::string_view("\0\0\0\x0cJXL ", 8), "a JPEG XL"},
      {std::string_view("\xff\x0a", 2), "a JPEG XL"},
      {std::string_view("\0\0\0\x0cjP  ", 8), "a JPEG 2000"},
      {"%PDF", "a PDF"},
      {"<svg", "an SVG"},
  }};
  for (const auto& [magic, name] : known) {
    if (start.starts_with(magic)) return name;
  }
  if (start.size() >= 12 && start.substr(4, 4) == "ftyp") {
    return start.substr(8, 4) == "avif" ? "an AVIF" : "an MP4 or HEIF";
  }
  return {};
}

Decoded decode(std::span<const std::byte> file, const std::string& name, const DecodeOptions& options) {
  if (is_jpeg(file)) return decode_jpeg(file, name, options);
  if (is_png(file)) return decode_png(file, name, options);
  if (is_webp(file)) return decode_webp(file, name, options);
  if (file.empty()) refuse_picture(name, "the file is empty, expected a JPEG, PNG or WebP picture");
  const std::string_view start(reinterpret_cast<const char*>(file.data()), std::min<size_t>(file.size(), 12));
  const std::string_view other = other_format(start);
  refuse_picture(name,
                 other.empty()
                     ? "the file starts with " + in_quotes(start) + ", expected a JPEG, PNG or WebP picture"
                     : "the file is " + std::string(other) + " file, expected a JPEG, PNG or WebP picture");
}

}  // namespace

// The whole file in memory. Not mapped: a picture that another program shortens in the meantime must
// end in a sentence, and touching a mapping of it would end the process.
std::vector<std::byte> read_picture_file(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::failed, "cannot read " + shown(path) + ": " + why);
  };
  system::File file;
  if (const std::error_code error = file.open(path)) fail(error.message());
  system::FileStatus status;
  if (const std::error_code error = file.status(status)) fail(error.message());
  if (status.kind == system::FileKind::folder) fail("it is a folder, expected a picture");
  if (status.kind != system::FileKind::regular) fail("it is not a regular file");
  const uint64_t size = status.bytes;
  if (size > largest_file) {
    fail("the file has " + std::to_string(size) + " bytes, expected at most " + std::to_string(largest_file) +
         " of a picture");
  }
  // The beginning first: what is no picture is not read to its end.
  std::vector<std::byte> bytes;
  for (const uint64_t wanted : {std::min(size, telling_bytes), size}) {
    const size_t before = bytes.size();
    bytes.resize(wanted);
    size_t count = 0;
    const std::error_code error = file.read(before, std::span(bytes).subspan(before), count);
    if (error) fail(error.message());
    bytes.resize(before + count);  // fewer where it was shortened in the meantime
    if (!is_jpeg(bytes) && !is_png(bytes) && !is_webp(bytes)) break;
  }
  return bytes;
}

void refuse_picture(const std::string& name, const std::string& what) {
  throw Error(ErrorCode::failed, name + ": " + what);
}

void check_size(uint64_t width, uint64_t height, const std::string& name, const DecodeOptions& options) {
  const std::string size = std::to_string(width) + "x" + std::to_string(height);
  if (width == 0 || height == 0) refuse_picture(name, "the picture has " + size + " pixels, expected some");
  // Both are below 2^32, so the product fits.
  if (width * height > options.max_pixels) {
    refuse_picture(name, "the picture has " + size + " pixels, expected at most " +
                             std::to_string(options.max_pixels) + " in all");
  }
}

Image empty_image(uint32_t width, uint32_t height) {
  Image image{.width = width, .height = height, .pixels = {}};
  image.pixels.resize(image.pixel_count() * 4);
  return image;
}

Image black_image(uint32_t width, uint32_t height) {
  Image image = empty_image(width, height);
  for (size_t i = 3; i < image.pixels.size(); i += 4) image.pixels[i] = 255;
  return image;
}

Image decode_image(std::span<const std::byte> file, const std::string& name, const DecodeOptions& options) {
  Decoded decoded = decode(file, name, options);
  return turned(std::move(decoded.image), decoded.orientation);
}

ImagePart decode_part(std::span<const std::byte> file, const std::string& name, const DecodeOptions& options,
                      const ChooseArea& choose, std::vector<uint8_t> memory) {
  bool chosen = false;
  if (is_jpeg(file)) {
    const ChooseArea once = [&](uint32_t height, uint32_t width) {
      chosen = true;
      return choose(height, width);
    };
    std::optional<ImagePart> part = decode_jpeg_part(file, name, options, once, std::move(memory));
    if (part) return std::move(*part);
  }
  ImagePart whole{.image = decode_image(file, name, options)};
  if (!chosen) choose(whole.image.height, whole.image.width);
  return whole;
}

uint64_t claimed_pixels(FileBytes file) {
  if (is_jpeg(file)) return claimed_jpeg_pixels(file);
  if (is_png(file)) return claimed_png_pixels(file);
  return is_webp(file) ? claimed_webp_pixels(file) : 0;
}

Image decode_image(const std::filesystem::path& path, const DecodeOptions& options) {
  const std::vector<std::byte> file = read_picture_file(path);
  return decode_image(file, shown(path), options);
}

Decoded decode_stored(const std::filesystem::path& path, DecodeOptions options) {
  options.exif = true;  // is read, not followed
  return decode(read_picture_file(path), shown(path), options);
}

std::vector<uint8_t> grey_from_rgb(const Image& image) {
  std::vector<uint8_t> grey(image.pixel_count());
  const uint8_t* from = image.pixels.data();
  for (uint8_t& value : grey) {
    // ITU-R 601's weights as 16-bit fractions, rounded: Pillow's L24.
    value = static_cast<uint8_t>((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
    from += 4;
  }
  return grey;
}

void make_grey(Image& image) {
  const std::vector<uint8_t> grey = grey_from_rgb(image);
  for (size_t i = 0; i < grey.size(); ++i) std::fill_n(image.pixels.begin() + 4 * i, 3, grey[i]);
}

}  // namespace vitrine
