// Any bytes are a picture of the size that its header claims, or an Error(failed).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "images/decoders.h"
#include "images/image.h"
#include "runtime/util/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t max_pixels = 1 << 20;  // large ones only take longer
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const uint64_t claimed = vitrine::claimed_pixels(file);
    const vitrine::Image image = vitrine::decode_image(file, "x", {.exif = true, .max_pixels = max_pixels});
    if (image.pixel_count() == 0 || image.pixel_count() > max_pixels || image.pixel_count() != claimed ||
        image.pixels.size() != image.pixel_count() * 4)
      abort();
    for (size_t i = 3; i < image.pixels.size(); i += 4) {
      if (image.pixels[i] != 255) abort();
    }
  } catch (const vitrine::Error& error) {
    const std::string message = error.what();
    if (error.code() != vitrine::ErrorCode::failed || !message.starts_with("x: ") ||
        message.find('\n') != std::string::npos)
      abort();
  }
  return 0;
}
