#include "images/jpeg_markers.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace vitrine {
namespace {

enum Marker : unsigned {
  dht = 0xc4,
  jpg = 0xc8,
  dac = 0xcc,
  rst0 = 0xd0,
  eoi = 0xd9,
  sos = 0xda,
  dqt = 0xdb
};

class Markers {
 public:
  Markers(FileBytes file, const std::string& name) : file_(file), name_(name) {}

  JpegFrame read() {
    // Between segments there may be anything but a marker that has no business there.
    bool after_ff = true;
    position_ = 3;  // FF D8 FF
    while (true) {
      const unsigned byte = next();
      if (!after_ff) {
        after_ff = byte == 0xff;
        continue;
      }
      if (byte == 0xff) continue;
      after_ff = false;
      if (byte == 0) continue;
      if (byte < 0xc0) {
        std::array<char, 8> shown;
        std::snprintf(shown.data(), shown.size(), "FF%02X", byte);
        refuse_picture(name_, std::string("the JPEG has the marker ") + shown.data() +
                                  " before its pixels, " + "expected a segment");
      }
      read_segment(byte);
      if (byte == sos) break;
    }
    if (frame_.components == 0) refuse_picture(name_, "the JPEG has no frame header before its pixels");
    return frame_;
  }

 private:
  void read_segment(unsigned marker) {
    const bool alone =
        marker == jpg || (marker >= rst0 && marker <= eoi) || (marker >= 0xf0 && marker <= 0xfd);
    if (alone) return;
    const unsigned high = next(), length = high << 8 | next();
    const size_t size = std::max(length, 2u) - 2;
    if (size > file_.size() - position_) truncated();
    const FileBytes content = file_.subspan(position_, size);
    position_ += size;
    if (marker == dqt) check_tables(content);
    if ((marker >= 0xc0 && marker <= 0xcf && marker != dht && marker != dac) || marker == 0xde)
      read_frame(content);
  }

  void read_frame(FileBytes content) {
    const auto byte = [&](size_t i) { return std::to_integer<unsigned>(content[i]); };
    if (content.size() < 6 || content.size() % 3 != 0)
      refuse_picture(name_, "the JPEG's frame header is broken");
    frame_ = {.width = byte(3) << 8 | byte(4), .height = byte(1) << 8 | byte(2), .components = byte(5)};
    if (byte(0) != 8) {
      refuse_picture(name_, "the JPEG has samples of " + std::to_string(byte(0)) + " bits, expected 8");
    }
    if (frame_.components != 1 && frame_.components != 3 && frame_.components != 4) {
      refuse_picture(name_, "the JPEG has " + std::to_string(frame_.components) +
                                " components, expected 1 (grey), 3 (color) or 4 (CMYK)");
    }
  }

  // Each table: a byte whose upper half says whether its 64 numbers have one byte or two.
  void check_tables(FileBytes content) const {
    while (!content.empty()) {
      const size_t size = 1 + (std::to_integer<unsigned>(content[0]) < 16 ? 64 : 128);
      if (content.size() < size) refuse_picture(name_, "the JPEG's quantization tables are broken");
      content = content.subspan(size);
    }
  }

  unsigned next() {
    if (position_ >= file_.size()) truncated();
    return std::to_integer<unsigned>(file_[position_++]);
  }
  [[noreturn]] void truncated() const {
    refuse_picture(name_, "the JPEG ends in its header: the file is truncated");
  }

  const FileBytes file_;
  const std::string& name_;
  size_t position_ = 0;
  JpegFrame frame_;
};

}  // namespace

JpegFrame read_jpeg_markers(FileBytes file, const std::string& name) { return Markers(file, name).read(); }

}  // namespace vitrine
