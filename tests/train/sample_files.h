// Data sets to read: right ones, and the means to spoil them.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/util/error.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"
#include "train/data/dataset.h"

namespace vitrine::test {

inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

// Byte p of picture i: any pattern that tells pictures and places apart.
inline uint8_t pattern(uint64_t i, uint64_t p) { return static_cast<uint8_t>(i * 37 + p * 11 + p / 7); }

inline std::string pattern_bytes(uint32_t count, uint32_t size) {
  std::string bytes;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t p = 0; p < size; ++p) bytes += static_cast<char>(pattern(i, p));
  }
  return bytes;
}

inline std::string idx_pictures(uint32_t count, uint32_t height, uint32_t width) {
  return big_endian(0x803) + big_endian(count) + big_endian(height) + big_endian(width) +
         pattern_bytes(count, height * width);
}

// Labels 0, 1, ..., classes - 1, 0, 1, ...
inline std::string idx_labels(uint32_t count, uint32_t classes = 10) {
  std::string bytes = big_endian(0x801) + big_endian(count);
  for (uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i % classes);
  return bytes;
}

inline std::string cifar_records(uint32_t count, uint32_t first = 0) {
  std::string bytes;
  for (uint32_t i = first; i < first + count; ++i) {
    bytes += static_cast<char>(i % 10);
    for (uint32_t p = 0; p < 3072; ++p) bytes += static_cast<char>(pattern(i, p));
  }
  return bytes;
}

inline std::string gzipped(const std::string& content) {
  z_stream z{};
  if (deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(deflateBound(&z, static_cast<uLong>(content.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  if (status != Z_STREAM_END) throw std::runtime_error("deflate");
  return out;
}

// What open_dataset says of the folder; "opened" if it says nothing. It must be one line of a bad file.
inline std::string refusal_of(const TemporaryFolder& folder, Split split = Split::train,
                              const DatasetOptions& options = {}) {
  try {
    open_dataset(folder.path(), split, options);
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.code() != ErrorCode::bad_file) return "another kind of error: " + message;
    if (message.find('\n') != std::string::npos) return "two lines: " + message;
    // Relative to the folder and with slashes, so that tests can spell all of it.
    const std::string prefix = folder.path().string();
    if (!message.starts_with(prefix)) return message;
    const size_t end = std::min(message.find_first_of(":, ", prefix.size()), message.size());
    const std::filesystem::path name = message.substr(prefix.size(), end - prefix.size());
    return name.generic_string() + message.substr(end);
  }
  return "opened";
}

inline std::vector<uint8_t> pixels_of(const Dataset& dataset, uint64_t i) {
  std::vector<uint8_t> pixels(dataset.shape().bytes());
  dataset.read(i, pixels);
  return pixels;
}

// True if picture i of the set has the bytes of pattern `number`.
inline bool has_pattern(const Dataset& dataset, uint64_t i, uint64_t number) {
  const std::vector<uint8_t> pixels = pixels_of(dataset, i);
  for (uint64_t p = 0; p < pixels.size(); ++p) {
    if (pixels[p] != pattern(number, p)) return false;
  }
  return true;
}

// Has the index be kept in a folder of the test's own, also of few files, and of those that are new.
class CacheFolder {
 public:
  CacheFolder() : variables_({{"VITRINE_CACHE_DIR", (folder_ / "cache").string()}}) {}
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache", none))
      found.push_back(entry);
    return found;
  }

 private:
  TemporaryFolder folder_;
  Variables variables_;
};

}  // namespace vitrine::test
