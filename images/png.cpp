// PNG through libpng. Pillow has a chunk reader of its own, and the two disagree about which files are
// broken; so PngChunks reads the chunks as Pillow does, and libpng gets a plain PNG of what they hold.
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "images/decoders.h"
#include "images/exif.h"
#include "images/png_chunks.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

constexpr std::array<uint8_t, 8> signature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

// IHDR's color types; what is none of these is red, green, blue and alpha.
constexpr uint8_t grey = 0, rgb = 2, palette = 3, grey_alpha = 4;

// What libpng reads: a signature, IHDR, and the pixels' chunks as IDAT. Palette indices go as grey, and
// checksums are zero: libpng is told to ignore them. Nothing here may throw, because libpng's frames
// are on the stack.
class PlainPng {
 public:
  explicit PlainPng(const PngChunks& chunks) : pixels_(chunks.pixels()) {
    const PngHeader& header = chunks.header();
    head_size_ = 0;
    for (const uint8_t byte : signature) put(byte);
    put_chunk(13, "IHDR");
    put_number(header.stored_width);
    put_number(header.stored_height);
    put(header.depth);
    put(header.color == palette ? grey : header.color);
    put(0);
    put(0);
    put(header.interlaced ? 1 : 0);
    next_ = FileBytes(head_).first(head_size_);
  }

  // False where there is nothing more.
  bool read(std::byte* to, size_t count) {
    while (count > 0) {
      if (next_.empty() && !advance()) return false;
      const size_t n = std::min(count, next_.size());
      std::memcpy(to, next_.data(), n);
      next_ = next_.subspan(n);
      to += n;
      count -= n;
    }
    return true;
  }

  // The pixels' chunk that was read from last, and whether all were used up.
  size_t current() const { return begun_ == 0 ? 0 : begun_ - 1; }
  bool ended() const { return ended_; }

 private:
  bool advance() {
    if (in_head_ && begun_ > 0) {
      in_head_ = false;
      next_ = pixels_[begun_ - 1];
      return true;
    }
    ended_ = begun_ == pixels_.size();
    if (ended_) return false;
    head_size_ = 0;
    put_number(0);  // the chunk before's checksum
    put_chunk(static_cast<uint32_t>(pixels_[begun_].size()), "IDAT");
    next_ = FileBytes(head_).first(head_size_);
    in_head_ = true;
    begun_++;
    return true;
  }

  void put(unsigned byte) { head_[head_size_++] = static_cast<std::byte>(byte); }
  void put_number(uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) put(value >> shift & 0xff);
  }
  void put_chunk(uint32_t length, const char* type) {
    put_number(length);
    for (int i = 0; i < 4; i++) put(static_cast<uint8_t>(type[i]));
  }

  const std::vector<FileBytes>& pixels_;
  std::array<std::byte, 32> head_;
  size_t head_size_ = 0;
  size_t begun_ = 0;  // chunks of pixels that reading has reached
  bool in_head_ = false, ended_ = false;
  FileBytes next_;
};

// How a row of libpng's samples becomes pixels.
class RowWriter {
 public:
  RowWriter(const PngHeader& header, Image& image) : header_(header), image_(image) {
    // Samples of one byte are looked up: palette entries that the file lacks are black.
    const unsigned largest = header.depth < 8 ? (1u << header.depth) - 1 : 255;
    for (unsigned i = 0; i < 256; i++) {
      for (unsigned c = 0; c < 3; c++) {
        const size_t entry = i * size_t{3} + c;
        const bool given = header.palette.size() / 3 > i;
        table_[i][c] = static_cast<uint8_t>(
            header.color == palette ? (given ? std::to_integer<unsigned>(header.palette[entry]) : 0)
                                    : std::min(255u, i * (255 / largest)));
      }
      table_[i][3] = 255;
    }
  }

  // Where the file stores less than the whole picture, the rest is what Pillow makes of samples of zero.
  void fill() {
    for (size_t i = 0; i < image_.pixels.size(); i += 4) std::memcpy(&image_.pixels[i], table_[0].data(), 4);
  }

  // A row of `count` samples goes to column x, x + step...
  void write(const uint8_t* row, uint32_t y, uint32_t x, uint32_t step, uint32_t count) const {
    const uint64_t first = (uint64_t{header_.top} + y) * image_.width + header_.left + x;
    uint8_t* to = image_.pixels.data() + first * 4;
    const size_t stride = size_t{step} * 4;
    const bool wide = header_.depth == 16;
    switch (header_.color) {
      case grey:
        // 16 bits are clipped, not scaled: that is what Pillow's I;16 does.
        if (wide)
          return each<2>(row, to, stride, count,
                         [](const uint8_t* s, uint8_t* p) { std::memset(p, s[0] != 0 ? 255 : s[1], 3); });
        [[fallthrough]];
      case palette:
        return each<1>(row, to, stride, count,
                       [&](const uint8_t* s, uint8_t* p) { std::memcpy(p, table_[*s].data(), 4); });
      case grey_alpha:
        if (wide) return each<4>(row, to, stride, count, copy_grey);
        return each<2>(row, to, stride, count, copy_grey);
      case rgb:
        // Of 16 bits the high byte is taken.
        if (wide) return each<6>(row, to, stride, count, copy_wide);
        return each<3>(row, to, stride, count, copy);
      default:
        if (wide) return each<8>(row, to, stride, count, copy_wide);
        return each<4>(row, to, stride, count, copy);
    }
  }

 private:
  static void copy_grey(const uint8_t* s, uint8_t* p) { std::memset(p, s[0], 3); }
  static void copy(const uint8_t* s, uint8_t* p) { std::memcpy(p, s, 3); }
  static void copy_wide(const uint8_t* s, uint8_t* p) {
    for (size_t c = 0; c < 3; c++) p[c] = s[2 * c];
  }

  template <size_t bytes, typename Pixel>
  static void each(const uint8_t* from, uint8_t* to, size_t stride, uint32_t count, Pixel&& pixel) {
    for (uint32_t i = 0; i < count; i++, from += bytes, to += stride) pixel(from, to);
  }

  const PngHeader& header_;
  Image& image_;
  std::array<std::array<uint8_t, 4>, 256> table_;
};

// The color that a picture in red, green and blue has where its file says "transparent", if it is a single
// one: what Pillow's convert("RGB") leaves in its info.
std::optional<std::array<uint8_t, 3>> transparent_color(const PngHeader& header) {
  const FileBytes bytes = header.transparency;
  const auto low = [&](size_t sample) { return std::to_integer<uint8_t>(bytes[2 * sample + 1]); };
  switch (header.color) {
    case palette: {
      // Several entries, or half transparent ones, are no single color there.
      const auto clear = std::ranges::find(bytes, std::byte{0});
      if (clear == bytes.end()) return std::nullopt;
      const bool single = std::ranges::count(bytes, std::byte{255}) + 1 == std::ssize(bytes);
      if (!single) return std::nullopt;
      const size_t entry = static_cast<size_t>(clear - bytes.begin()) * 3;
      std::array<uint8_t, 3> color{};
      for (size_t c = 0; c < 3 && entry + 3 <= header.palette.size(); ++c)
        color[c] = std::to_integer<uint8_t>(header.palette[entry + c]);
      return color;
    }
    case grey:
      if (bytes.size() < 2) return std::nullopt;
      // Of one and of sixteen bits the sample stays a lone number, which stands for red.
      if (header.depth == 1 || header.depth == 16) return std::array<uint8_t, 3>{low(0), 0, 0};
      return std::array<uint8_t, 3>{low(0), low(0), low(0)};
    case rgb:
      if (bytes.size() < 6) return std::nullopt;
      return std::array<uint8_t, 3>{low(0), low(1), low(2)};
    default:
      return std::nullopt;
  }
}

void make_white(const std::array<uint8_t, 3>& color, Image& image) {
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    if (std::equal(color.begin(), color.end(), image.pixels.begin() + static_cast<std::ptrdiff_t>(i)))
      std::memset(&image.pixels[i], 255, 3);
  }
}

// libpng's state and what its callbacks need.
class PngReader {
 public:
  PngReader(const PngChunks& chunks, const RowWriter& writer)
      : header_(chunks.header()), plain_(chunks), writer_(writer) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // True if all rows were made. libpng goes on to look for the end of the compressed data, which may
  // be missing: what it says about that is of no interest.
  bool decode() {
    if (info_ == nullptr) return false;
    if (setjmp(jump_) == 0) run();
    return rows_ > 0 && made_ == rows_;
  }

  size_t last_part() const { return last_part_; }
  bool ended() const { return plain_.ended(); }
  uint64_t made() const { return made_; }
  const char* words() const { return info_ == nullptr ? "out of memory" : words_.data(); }

 private:
  // libpng's errors jump out of here, past destructors: no object may be made that has one.
  void run() {
    png_set_read_fn(png_, this, on_read);
    png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);      // the size was checked already
    png_set_option(png_, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);  // some announce less than they use
    png_read_info(png_, info_);
    png_set_packing(png_);  // a sample has a byte or two
    png_set_read_user_transform_fn(png_, on_row);
    png_read_update_info(png_, info_);
    for (int pass = 0; pass < (header_.interlaced ? PNG_INTERLACE_ADAM7_PASSES : 1); pass++) {
      rows_ += rows_of(pass);
    }
    for (uint64_t row = 0; row < rows_; row++) png_read_row(png_, nullptr, nullptr);
  }

  // Interlacing stores seven small pictures; one without columns has no rows either.
  uint32_t rows_of(int pass) const {
    if (!header_.interlaced) return header_.stored_height;
    return PNG_PASS_COLS(header_.stored_width, pass) == 0 ? 0 : PNG_PASS_ROWS(header_.stored_height, pass);
  }

  static PngReader& from(png_structp png) { return *static_cast<PngReader*>(png_get_error_ptr(png)); }
  static void on_error(png_structp png, png_const_charp words) {
    PngReader& reader = from(png);
    std::strncpy(reader.words_.data(), words, reader.words_.size() - 1);
    std::longjmp(reader.jump_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, size_t count) {
    if (!from(png).plain_.read(reinterpret_cast<std::byte*>(to), count)) png_error(png, "no more data");
  }
  static void on_row(png_structp png, png_row_infop info, png_bytep samples) {
    PngReader& reader = from(png);
    const uint32_t row = png_get_current_row_number(png);
    if (reader.header_.interlaced) {
      const int pass = png_get_current_pass_number(png);
      reader.writer_.write(samples, PNG_ROW_FROM_PASS_ROW(row, pass), PNG_PASS_START_COL(pass),
                           1u << PNG_PASS_COL_SHIFT(pass), info->width);
    } else {
      reader.writer_.write(samples, row, 0, 1, info->width);
    }
    reader.made_++;
    reader.last_part_ = reader.plain_.current();
  }

  const PngHeader& header_;
  PlainPng plain_;
  const RowWriter& writer_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_;
  std::array<char, 100> words_{};
  uint64_t rows_ = 0, made_ = 0;
  size_t last_part_ = 0;
};

}  // namespace

bool is_png(FileBytes file) {
  return file.size() >= signature.size() && std::memcmp(file.data(), signature.data(), signature.size()) == 0;
}

uint64_t claimed_png_pixels(FileBytes file) {
  try {
    const PngChunks chunks(file, "");
    return uint64_t{chunks.header().width} * chunks.header().height;
  } catch (const Error&) {
    return 0;
  }
}

Decoded decode_png(FileBytes file, const std::string& name, const DecodeOptions& options) {
  PngChunks chunks(file, name);
  const PngHeader& header = chunks.header();
  check_size(header.width, header.height, name, options);
  if (header.palette.size() / 3 > 256) {
    refuse_picture(name, "the PNG's palette has " + std::to_string(header.palette.size() / 3) +
                             " colors, expected at most 256");
  }
  Decoded decoded{.image = black_image(header.width, header.height)};
  RowWriter writer(header, decoded.image);
  if (header.stored_width != header.width || header.stored_height != header.height) writer.fill();
  PngReader reader(chunks, writer);
  if (!reader.decode()) {
    const std::string where =
        " after row " + std::to_string(reader.made()) + " of " + std::to_string(header.stored_height);
    refuse_picture(name, reader.ended()
                             ? "the PNG's pixels end" + where + ": the file is truncated"
                             : "the PNG's pixels are broken" + where + " (" + reader.words() + ")");
  }
  chunks.read_rest(reader.last_part());
  if (options.white) {
    if (const auto color = transparent_color(header)) make_white(*color, decoded.image);
  }
  if (options.exif) decoded.orientation = exif_orientation(header.exif);
  return decoded;
}

}  // namespace vitrine
