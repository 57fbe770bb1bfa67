// What the decoders of images/image.h share. Each gets the whole file and its name for messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "images/image.h"

namespace vitrine {

using FileBytes = std::span<const std::byte>;

bool is_jpeg(FileBytes file);
bool is_png(FileBytes file);
bool is_webp(FileBytes file);

// The orientation is 1 where options.exif is off.
Decoded decode_jpeg(FileBytes file, const std::string& name, const DecodeOptions& options);
// The rectangle that is chosen and what lies around it in the same blocks, or nothing where the whole is to
// be decoded: to tell what is wrong with it, to turn it, or because its pixels come in several passes.
std::optional<ImagePart> decode_jpeg_part(FileBytes file, const std::string& name,
                                          const DecodeOptions& options, const ChooseArea& choose,
                                          std::vector<uint8_t> memory);
Decoded decode_png(FileBytes file, const std::string& name, const DecodeOptions& options);
Decoded decode_webp(FileBytes file, const std::string& name, const DecodeOptions& options);

// The pixels that the file's header claims; 0 where it is not one that can be read.
uint64_t claimed_pixels(FileBytes file);
uint64_t claimed_jpeg_pixels(FileBytes file);
uint64_t claimed_png_pixels(FileBytes file);
uint64_t claimed_webp_pixels(FileBytes file);

// Throws Error(failed): "NAME: WHAT".
[[noreturn]] void refuse_picture(const std::string& name, const std::string& what);

// Refuses a picture without pixels, or with more than the options allow.
void check_size(uint64_t width, uint64_t height, const std::string& name, const DecodeOptions& options);

// An image of this size, every pixel black; or, for who writes all four bytes of each, transparent.
Image black_image(uint32_t width, uint32_t height);
Image empty_image(uint32_t width, uint32_t height);

}  // namespace vitrine
