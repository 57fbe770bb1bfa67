// TensorBoard's event files: records with checksums, each an Event of protocol buffers. The bytes alone; who
// writes them where is training_log.h's matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vitrine {

// CRC-32C (Castagnoli).
uint32_t crc32c(std::span<const std::byte> bytes);

// A record as TFRecord frames it: length, the length's checksum, the bytes, theirs.
std::string event_record(std::string_view event);

// What an event file begins with.
std::string version_event(double wall_time);
using Scalar = std::pair<std::string_view, double>;
std::string scalar_event(double wall_time, uint64_t step, std::span<const Scalar> scalars);
struct EventPicture {
  std::string tag;
  uint32_t width = 0, height = 0, channels = 0;
  std::span<const std::byte> png;
};
std::string picture_event(double wall_time, uint64_t step, std::span<const EventPicture> pictures);

}  // namespace vitrine
