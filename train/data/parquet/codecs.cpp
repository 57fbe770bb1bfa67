#include "train/data/parquet/codecs.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace vitrine::parquet {
namespace {

[[noreturn]] void refuse(std::string_view codec) {
  throw BadPage{"bytes of a page that are none of " + std::string(codec), "a page that isn't damaged"};
}

// Snappy's format: a varint with the size, then literals and copies of what was there before.
class Snappy {
 public:
  Snappy(std::span<const std::byte> bytes, std::span<std::byte> into) : in_(bytes), out_(into) {}

  void run() {
    if (varint() != out_.size()) bad();
    while (at_ < in_.size()) {
      const uint32_t tag = byte();
      switch (tag & 3) {
        case 0:
          literal(tag >> 2);
          break;
        case 1: {
          const uint32_t high = (tag >> 5) << 8;
          copy(high | byte(), (tag >> 2 & 7) + 4);
          break;
        }
        case 2:
          copy(number(2), (tag >> 2) + 1);
          break;
        case 3:
          copy(number(4), (tag >> 2) + 1);
          break;
      }
    }
    if (made_ != out_.size()) bad();
  }

 private:
  [[noreturn]] static void bad() { refuse("Snappy's"); }

  uint32_t byte() {
    if (at_ >= in_.size()) bad();
    return std::to_integer<uint32_t>(in_[at_++]);
  }
  uint64_t number(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= uint64_t{byte()} << (8 * i);
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const uint64_t next = byte();
      value |= (next & 0x7f) << shift;
      if (next < 0x80) return value;
    }
    bad();
  }

  void literal(uint64_t length) {
    if (length >= 60) length = number(static_cast<int>(length) - 59);
    ++length;
    if (length > in_.size() - at_ || length > out_.size() - made_) bad();
    std::memcpy(out_.data() + made_, in_.data() + at_, length);
    at_ += length;
    made_ += length;
  }

  void copy(uint64_t back, uint64_t length) {
    if (back == 0 || back > made_ || length > out_.size() - made_) bad();
    // They may overlap: what is copied is then repeated.
    for (uint64_t i = 0; i < length; ++i) out_[made_ + i] = out_[made_ + i - back];
    made_ += length;
  }

  std::span<const std::byte> in_;
  std::span<std::byte> out_;
  size_t at_ = 0, made_ = 0;
};

void inflate_into(std::span<const std::byte> bytes, std::span<std::byte> into) {
  z_stream z{};
  constexpr int of_either_kind = 32;  // gzip's heading or zlib's
  if (inflateInit2(&z, of_either_kind + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  // zlib's own pointers aren't const. Sizes of pages have 31 bits.
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(into.data());
  z.avail_out = static_cast<uInt>(into.size());
  const int status = inflate(&z, Z_FINISH);
  const bool whole = status == Z_STREAM_END && z.avail_out == 0;
  inflateEnd(&z);
  if (!whole) refuse("gzip's");
}

void unpack_zstd_into(std::span<const std::byte> bytes, std::span<std::byte> into) {
  if (ZSTD_decompress(into.data(), into.size(), bytes.data(), bytes.size()) != into.size()) refuse("ZSTD's");
}

// How much a codec's bytes can become, each.
uint64_t most_times(Codec codec) {
  switch (codec) {
    case Codec::none:
      return 1;
    case Codec::snappy:
      return 22;  // copies make 64 bytes of three
    case Codec::gzip:
      return 1032;  // deflate's 258 of two bits
    case Codec::zstd:
      return 32768;  // a block repeats a byte 128 KiB times, and has four itself
  }
  return 0;
}

}  // namespace

bool is_known(int64_t codec) {
  return (codec >= 0 && codec <= static_cast<int64_t>(Codec::gzip)) ||
         codec == static_cast<int64_t>(Codec::zstd);
}

std::string codec_name(int64_t codec) {
  constexpr std::array<std::string_view, 8> names{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                                  "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
  if (codec >= 0 && codec < static_cast<int64_t>(names.size()))
    return std::string(names[static_cast<size_t>(codec)]);
  return "number " + std::to_string(codec);
}

std::vector<std::byte> decompressed(Codec codec, std::span<const std::byte> bytes, uint64_t size) {
  const uint64_t times = most_times(codec);
  if (size > bytes.size() * times + (codec == Codec::none ? 0 : 64)) {
    throw BadPage{"a page of " + std::to_string(bytes.size()) + " bytes",
                  "more, which can become the " + std::to_string(size) + " of its header"};
  }
  if (codec == Codec::none && size != bytes.size()) {
    throw BadPage{"a page of " + std::to_string(bytes.size()) + " bytes",
                  "the " + std::to_string(size) + " of its header"};
  }
  std::vector<std::byte> result(size);
  if (codec == Codec::none) {
    std::ranges::copy(bytes, result.begin());
  } else if (codec == Codec::snappy) {
    Snappy(bytes, result).run();
  } else if (codec == Codec::gzip) {
    inflate_into(bytes, result);
  } else {
    unpack_zstd_into(bytes, result);
  }
  return result;
}

}  // namespace vitrine::parquet
