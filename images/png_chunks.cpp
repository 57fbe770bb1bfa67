#include "images/png_chunks.h"

#include <zlib.h>

#include <algorithm>

#include "runtime/util/text.h"

namespace vitrine {
namespace {

constexpr uint64_t signature_bytes = 8, head_bytes = 8, checksum_bytes = 4;
constexpr uint64_t sequence_bytes = 4;  // in front of an fdAT chunk's pixels

// DDAT is what some old programs called them.
bool is_pixels(std::string_view type) { return type == "IDAT" || type == "DDAT" || type == "fdAT"; }

uint32_t checksum(FileBytes bytes) {
  uLong value = crc32(0, nullptr, 0);
  while (!bytes.empty()) {  // zlib counts in 32 bits
    const size_t count = std::min(bytes.size(), size_t{1} << 30);
    value = crc32(value, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(count));
    bytes = bytes.subspan(count);
  }
  return static_cast<uint32_t>(value);
}

uint32_t number(FileBytes bytes, size_t offset) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; i++) value = value << 8 | std::to_integer<uint32_t>(bytes[offset + i]);
  return value;
}

}  // namespace

uint64_t PngChunks::Chunk::end() const { return begin + length + checksum_bytes; }

PngChunks::PngChunks(FileBytes file, const std::string& name) : file_(file), name_(name) {
  uint64_t position = signature_bytes;
  std::optional<Chunk> chunk;
  while (true) {
    chunk = chunk_at(position);
    if (!chunk) fail("the PNG has no chunk at byte " + std::to_string(position) + ", expected its pixels");
    if (chunk->type == "IEND") fail("the PNG ends without pixels");
    if (is_pixels(chunk->type)) break;
    read_header_chunk(*chunk);
    position = chunk->end();
  }
  if (header_.depth == 0) fail("the PNG has pixels before their size (IHDR)");
  if (!in_sequence(*chunk)) fail("the PNG's frames are not numbered in order");
  do {
    FileBytes bytes = file_.subspan(chunk->begin);
    bytes = bytes.first(std::min<uint64_t>(bytes.size(), chunk->length));
    if (chunk->type == "fdAT") bytes = bytes.subspan(std::min<size_t>(sequence_bytes, bytes.size()));
    pixels_.push_back(bytes);
    pixels_end_.push_back(chunk->end());
    sequence_at_end_.push_back(sequence_);
    chunk = chunk_at(chunk->end());
  } while (chunk && is_pixels(chunk->type) && in_sequence(*chunk));
}

// An animation numbers its fcTL and fdAT chunks, all together.
bool PngChunks::in_sequence(const Chunk& chunk) {
  if (chunk.type != "fcTL" && chunk.type != "fdAT") return true;
  if (file_.size() - chunk.begin < sequence_bytes || chunk.length < sequence_bytes) return false;
  const bool expected =
      number(file_.subspan(chunk.begin), 0) == sequence_ && (sequence_ > 0 || chunk.type == "fcTL");
  sequence_++;
  return expected;
}

// Nothing where the file ends, or something else than a chunk is.
std::optional<PngChunks::Chunk> PngChunks::chunk_at(uint64_t offset) const {
  if (offset > file_.size() || file_.size() - offset < head_bytes) return std::nullopt;
  const FileBytes head = file_.subspan(offset, head_bytes);
  const Chunk chunk{.type = {reinterpret_cast<const char*>(head.data()) + 4, 4},
                    .length = number(head, 0),
                    .begin = offset + head_bytes};
  const bool is_name = std::all_of(chunk.type.begin(), chunk.type.end(), [](char letter) {
    return letter == '_' || (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= 'a' && letter <= 'z');
  });
  return is_name ? std::optional(chunk) : std::nullopt;
}

FileBytes PngChunks::content(const Chunk& chunk) const {
  const uint64_t there = file_.size() - chunk.begin;
  if (chunk.length > there) {
    fail("the PNG ends inside its chunk " + in_quotes(chunk.type) + ": " + std::to_string(there) + " of " +
         std::to_string(chunk.length) + " bytes are there");
  }
  return file_.subspan(chunk.begin, chunk.length);
}

void PngChunks::read_header_chunk(const Chunk& chunk) {
  const FileBytes bytes = content(chunk);
  if (chunk.end() > file_.size()) fail("the PNG ends inside its chunk " + in_quotes(chunk.type));
  const uint32_t stored = number(file_.subspan(chunk.begin + chunk.length, checksum_bytes), 0);
  if (stored != checksum(file_.subspan(chunk.begin - 4, chunk.length + 4))) {
    fail("the PNG's chunk " + in_quotes(chunk.type) + " has a wrong checksum");
  }
  if (chunk.type == "IHDR") {
    read_size(bytes);
  } else if (chunk.type == "PLTE" && header_.color == 3) {
    header_.palette = bytes;
  } else if (chunk.type == "tRNS") {
    header_.transparency = bytes;
  } else if (chunk.type == "acTL") {
    header_.animated = true;
  } else if (chunk.type == "fcTL") {
    if (!in_sequence(chunk)) fail("the PNG's frames are not numbered in order");
    read_frame(bytes);
  } else if (chunk.type == "eXIf") {
    header_.exif = bytes;
  }
}

void PngChunks::read_size(FileBytes bytes) {
  if (bytes.size() < 13) fail("the PNG's header has " + std::to_string(bytes.size()) + " bytes, expected 13");
  const auto byte = [&](size_t i) { return std::to_integer<uint8_t>(bytes[i]); };
  header_.width = header_.stored_width = number(bytes, 0);
  header_.height = header_.stored_height = number(bytes, 4);
  header_.left = header_.top = 0;
  header_.depth = byte(8);
  header_.color = byte(9);
  header_.interlaced = byte(12) != 0;
  const bool small = header_.depth == 1 || header_.depth == 2 || header_.depth == 4;
  const bool known = header_.depth == 8    ? header_.color <= 6 && header_.color != 1 && header_.color != 5
                     : header_.depth == 16 ? header_.color == 0 || header_.color == 2 || header_.color == 4 ||
                                                 header_.color == 6
                                           : small && (header_.color == 0 || header_.color == 3);
  if (!known) {
    fail("the PNG has pixels of type " + std::to_string(header_.color) + " with " +
         std::to_string(header_.depth) + " bits, which PNG does not have");
  }
  if (byte(11) != 0) fail("the PNG uses filter method " + std::to_string(byte(11)) + ", expected 0");
}

void PngChunks::read_frame(FileBytes bytes) {
  if (bytes.size() < 26)
    fail("the PNG's frame header has " + std::to_string(bytes.size()) + " bytes, expected 26");
  header_.stored_width = number(bytes, 4);
  header_.stored_height = number(bytes, 8);
  header_.left = number(bytes, 12);
  header_.top = number(bytes, 16);
  if (header_.stored_width == 0 || header_.stored_height == 0 ||
      uint64_t{header_.left} + header_.stored_width > header_.width ||
      uint64_t{header_.top} + header_.stored_height > header_.height) {
    fail("the PNG's first frame does not lie inside its picture");
  }
}

void PngChunks::read_rest(size_t last) {
  std::optional<Chunk> chunk = chunk_at(pixels_end_[last]);
  sequence_ = sequence_at_end_[last];
  for (; chunk && chunk->type != "IEND"; chunk = chunk_at(chunk->end())) {
    if (chunk->type == "fcTL" && header_.animated) return;
    const FileBytes bytes = content(*chunk);
    if (!in_sequence(*chunk)) fail("the PNG's frames are not numbered in order");
    if (chunk->type == "eXIf") header_.exif = bytes;
  }
}

void PngChunks::fail(const std::string& what) const { refuse_picture(name_, what); }

}  // namespace vitrine
