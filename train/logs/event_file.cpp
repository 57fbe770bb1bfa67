#include "train/logs/event_file.h"

#include <array>
#include <bit>

namespace vitrine {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t polynomial = 0x82f63b78;  // reflected
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0);
    table[i] = crc;
  }
  return table;
}

// A checksum of bytes that hold checksums would be one of itself; so it is turned and moved.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

template <typename T>
void append_little_endian(std::string& to, T value) {
  for (size_t i = 0; i < sizeof value; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

void append_checksum(std::string& to, std::string_view of) {
  append_little_endian(to, masked(crc32c(std::as_bytes(std::span(of)))));
}

void append_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>((value & 0x7f) | 0x80);
  to += static_cast<char>(value);
}

// Protocol buffers' kinds of fields.
enum Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
void append_key(std::string& to, uint32_t field, Wire wire) { append_varint(to, field << 3 | wire); }
void append_number(std::string& to, uint32_t field, uint64_t value) {
  append_key(to, field, varint);
  append_varint(to, value);
}
void append_double(std::string& to, uint32_t field, double value) {
  append_key(to, field, fixed64);
  append_little_endian(to, std::bit_cast<uint64_t>(value));
}
void append_float(std::string& to, uint32_t field, float value) {
  append_key(to, field, fixed32);
  append_little_endian(to, std::bit_cast<uint32_t>(value));
}
void append_bytes(std::string& to, uint32_t field, std::string_view value) {
  append_key(to, field, bytes);
  append_varint(to, value.size());
  to += value;
}

// tensorflow/core/util/event.proto and framework/summary.proto: the fields' numbers.
namespace event {
constexpr uint32_t wall_time = 1, step = 2, file_version = 3, summary = 5;
}
namespace summary {
constexpr uint32_t value = 1, tag = 1, simple_value = 2, image = 4;
}
namespace picture {
constexpr uint32_t height = 1, width = 2, colors = 3, encoded = 4;
}

std::string event_of(double wall_time, uint64_t step, std::string_view summary) {
  std::string event;
  append_double(event, event::wall_time, wall_time);
  append_number(event, event::step, step);
  append_bytes(event, event::summary, summary);
  return event;
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  static constexpr std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = ~0u;
  for (const std::byte byte : bytes) crc = table[(crc ^ static_cast<uint32_t>(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

std::string event_record(std::string_view event) {
  std::string record;
  append_little_endian(record, uint64_t{event.size()});
  append_checksum(record, std::string(record));
  record += event;
  append_checksum(record, event);
  return record;
}

std::string version_event(double wall_time) {
  std::string event;
  append_double(event, event::wall_time, wall_time);
  append_bytes(event, event::file_version, "brain.Event:2");
  return event;
}

std::string scalar_event(double wall_time, uint64_t step, std::span<const Scalar> scalars) {
  std::string all;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    append_bytes(value, summary::tag, tag);
    append_float(value, summary::simple_value, static_cast<float>(number));
    append_bytes(all, summary::value, value);
  }
  return event_of(wall_time, step, all);
}

std::string picture_event(double wall_time, uint64_t step, std::span<const EventPicture> pictures) {
  std::string all;
  for (const EventPicture& each : pictures) {
    std::string image;
    append_number(image, picture::height, each.height);
    append_number(image, picture::width, each.width);
    append_number(image, picture::colors, each.channels);
    append_bytes(image, picture::encoded, {reinterpret_cast<const char*>(each.png.data()), each.png.size()});
    std::string value;
    append_bytes(value, summary::tag, each.tag);
    append_bytes(value, summary::image, image);
    append_bytes(all, summary::value, value);
  }
  return event_of(wall_time, step, all);
}

}  // namespace vitrine
