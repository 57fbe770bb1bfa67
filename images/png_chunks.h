// The chunks of a PNG file, taken as strictly and as laxly as Pillow takes them: before the pixels every
// chunk must be whole and its checksum right; the pixels' own checksums are not looked at, what comes
// after them only has to be whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/decoders.h"

namespace vitrine {

// What the chunks before the pixels say.
struct PngHeader {
  uint32_t width = 0, height = 0;  // of the picture
  // Where the stored pixels lie in it: all of it, or the rectangle of an animation's first frame.
  uint32_t left = 0, top = 0, stored_width = 0, stored_height = 0;
  uint8_t depth = 0, color = 0;  // as in IHDR
  bool interlaced = false;
  bool animated = false;
  FileBytes palette;       // three bytes a color; empty if there is none
  FileBytes transparency;  // of tRNS, as it stands; empty if there is none
  FileBytes exif;          // likewise
};

class PngChunks {
 public:
  // Reads up to the first byte of the pixels. Error(failed) if the file breaks a rule.
  PngChunks(FileBytes file, const std::string& name);

  const PngHeader& header() const { return header_; }

  // The compressed pixels, chunk by chunk, as far as the file has them.
  const std::vector<FileBytes>& pixels() const { return pixels_; }

  // To be called once all pixels are there, with the number of the chunk that held the last of them:
  // what follows must be whole too, but nobody misses it altogether. Reads an EXIF block that comes late.
  void read_rest(size_t last);

 private:
  struct Chunk {
    std::string_view type;
    uint64_t length = 0;
    uint64_t begin = 0;    // of the content
    uint64_t end() const;  // where the next chunk begins
  };
  std::optional<Chunk> chunk_at(uint64_t offset) const;
  FileBytes content(const Chunk& chunk) const;
  void read_header_chunk(const Chunk& chunk);
  void read_size(FileBytes bytes);
  void read_frame(FileBytes bytes);
  bool in_sequence(const Chunk& chunk);
  [[noreturn]] void fail(const std::string& what) const;

  FileBytes file_;
  std::string name_;
  PngHeader header_;
  uint32_t sequence_ = 0;  // the number that the next fcTL or fdAT chunk must have
  std::vector<FileBytes> pixels_;
  // Behind each of them: where the next chunk begins, and what sequence_ is.
  std::vector<uint64_t> pixels_end_;
  std::vector<uint32_t> sequence_at_end_;
};

}  // namespace vitrine
