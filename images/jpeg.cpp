// JPEG through libjpeg-turbo with its defaults, as Pillow uses it: the accurate integer transform and
// smooth ("fancy") upsampling of the colors.

// clang-format off: jpeglib.h needs FILE and does not declare it
#include <cstdio>
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "images/decoders.h"
#include "images/exif.h"
#include "images/jpeg_markers.h"
#include "runtime/util/error.h"

namespace vitrine {
namespace {

constexpr int exif_marker = JPEG_APP0 + 1;
constexpr unsigned longest_marker = 0xffff;

// A progressive file may hold any number of scans over all pixels, and a small file thousands of empty
// ones, each as slow as a whole picture. Encoders write ten or so.
constexpr int most_scans = 500;

struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> words;
};

[[noreturn]] void on_error(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  errors->base.format_message(jpeg, errors->words.data());
  std::longjmp(errors->jump, 1);
}
void on_message(j_common_ptr) {}

void on_progress(j_common_ptr jpeg) {
  if (jpeg->is_decompressor == FALSE) return;
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress->input_scan_number <= most_scans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  std::snprintf(errors->words.data(), errors->words.size(), "more than %d scans", most_scans);
  std::longjmp(errors->jump, 1);
}

// The file is in memory; past its end there is nothing, not even the end marker that libjpeg's own
// source makes up. So a truncated file suspends the decoder, which is how we know.
void begin_source(j_decompress_ptr) {}
boolean fill_source(j_decompress_ptr) { return FALSE; }
void skip_source(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  const size_t n = std::min(static_cast<size_t>(count), jpeg->src->bytes_in_buffer);
  jpeg->src->next_input_byte += n;
  jpeg->src->bytes_in_buffer -= n;
}

class JpegReader {
 public:
  enum class Step { done, truncated, broken };

  JpegReader(FileBytes file, bool keep_exif) : keep_exif_(keep_exif) {
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(file.data());
    source_.bytes_in_buffer = file.size();
    source_.init_source = begin_source;
    source_.fill_input_buffer = fill_source;
    source_.skip_input_data = skip_source;
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.term_source = begin_source;
    progress_.progress_monitor = on_progress;
    jpeg_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_error;
    errors_.base.output_message = on_message;
  }
  // Does nothing where nothing was created.
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  Step read_header() { return guarded(&JpegReader::run_header); }
  // Needs an image of the header's size. Of a file that ends too early the rows so far are there.
  Step read_pixels(Image& image) {
    image_ = &image;
    return guarded(&JpegReader::run_pixels);
  }

  // Whether rows and columns can be left out: all components in one pass, its end where the file's is.
  bool may_skip() const {
    return jpeg_.progressive_mode == FALSE && jpeg_.arith_code == FALSE && jpeg_.num_components != 4 &&
           jpeg_.comps_in_scan == jpeg_.num_components;
  }
  // The blocks that the rectangle lies in and one more on each side but the lower: the color of pixels at a
  // part's edge is made without the neighbours that it has in the whole.
  ImageArea blocks_around(const ImageArea& area) const {
    const uint32_t across = DCTSIZE * static_cast<uint32_t>(jpeg_.max_h_samp_factor),
                   down = DCTSIZE * static_cast<uint32_t>(jpeg_.max_v_samp_factor);
    const auto before = [](uint32_t at, uint32_t block) { return std::max(at / block, 1u) * block - block; };
    const uint32_t top = before(area.top, down), left = before(area.left, across);
    const uint32_t right =
        std::min((area.left + area.width + across - 1) / across * across + across, width());
    return {.top = top, .left = left, .height = area.top + area.height - top, .width = right - left};
  }
  // Needs an image of the size of these blocks. Anything that isn't as it should be is Step::broken.
  Step read_part(Image& image, const ImageArea& blocks) {
    image_ = &image;
    blocks_ = blocks;
    return guarded(&JpegReader::run_part);
  }

  uint32_t width() const { return jpeg_.image_width; }
  uint32_t height() const { return jpeg_.image_height; }
  int components() const { return jpeg_.num_components; }
  uint32_t rows() const { return row_; }
  const char* words() const { return errors_.words.data(); }

  // Known from the header on, and gone once the pixels were read.
  std::vector<std::byte> exif() const {
    constexpr std::array<JOCTET, 6> prefix{'E', 'x', 'i', 'f', 0, 0};
    std::vector<std::byte> block;
    for (auto* marker = jpeg_.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->marker != exif_marker || marker->data_length < prefix.size() ||
          std::memcmp(marker->data, prefix.data(), prefix.size()) != 0)
        continue;
      const auto* bytes = reinterpret_cast<const std::byte*>(marker->data);
      block.insert(block.end(), bytes + prefix.size(), bytes + marker->data_length);
    }
    return block;
  }

 private:
  // libjpeg's errors jump out of `run`, past destructors: it may make no object that has one.
  Step guarded(Step (JpegReader::*run)()) {
    if (setjmp(errors_.jump) != 0) return Step::broken;
    return (this->*run)();
  }

  Step run_header() {
    jpeg_create_decompress(&jpeg_);
    jpeg_.src = &source_;
    jpeg_.progress = &progress_;
    if (keep_exif_) jpeg_save_markers(&jpeg_, exif_marker, longest_marker);
    int status = JPEG_HEADER_TABLES_ONLY;
    while (status == JPEG_HEADER_TABLES_ONLY) status = jpeg_read_header(&jpeg_, FALSE);
    return status == JPEG_HEADER_OK ? Step::done : Step::truncated;
  }

  Step run_pixels() {
    // RGBA is RGBX with the promise of 255 in the last byte.
    jpeg_.out_color_space = jpeg_.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBA;
    if (jpeg_start_decompress(&jpeg_) == FALSE) return Step::truncated;
    while (row_ < jpeg_.image_height) {
      uint8_t* row = image_->pixels.data() + size_t{row_} * jpeg_.image_width * 4;
      if (jpeg_read_scanlines(&jpeg_, &row, 1) != 1) return Step::truncated;
      if (jpeg_.num_components == 4) rgb_from_cmyk(row, jpeg_.image_width);
      row_++;
    }
    jpeg_finish_decompress(&jpeg_);  // false where the end marker is missing, which is no loss
    return Step::done;
  }

  Step run_part() {
    jpeg_.out_color_space = JCS_EXT_RGBA;
    if (jpeg_start_decompress(&jpeg_) == FALSE) return Step::broken;
    JDIMENSION left = blocks_.left, width = blocks_.width;
    jpeg_crop_scanline(&jpeg_, &left, &width);
    if (left != blocks_.left || width != blocks_.width) return Step::broken;
    if (blocks_.top != 0 && jpeg_skip_scanlines(&jpeg_, blocks_.top) != blocks_.top) return Step::broken;
    for (; row_ < blocks_.height; row_++) {
      uint8_t* row = image_->pixels.data() + size_t{row_} * width * 4;
      if (jpeg_read_scanlines(&jpeg_, &row, 1) != 1) return Step::broken;
    }
    return errors_.base.num_warnings == 0 ? Step::done : Step::broken;
  }

  // Adobe stores ink inverted, 255 for none, and everybody else followed; so Pillow always takes it
  // that way. Its rule for CMYK is multiplication, rounded as in MULDIV255.
  static void rgb_from_cmyk(uint8_t* pixel, uint32_t count) {
    for (uint32_t i = 0; i < count; i++, pixel += 4) {
      const unsigned light = pixel[3];  // 255 minus black
      for (size_t c = 0; c < 3; c++) {
        const unsigned product = (255u - pixel[c]) * light + 128;
        pixel[c] = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
      }
      pixel[3] = 255;
    }
  }

  const bool keep_exif_;
  jpeg_decompress_struct jpeg_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  JpegErrors errors_{};
  Image* image_ = nullptr;
  ImageArea blocks_;
  uint32_t row_ = 0;
};

void check(JpegReader::Step step, const JpegReader& reader, const std::string& name,
           const std::string& where) {
  if (step == JpegReader::Step::truncated)
    refuse_picture(name, "the JPEG ends " + where + ": the file is truncated");
  if (step == JpegReader::Step::broken)
    refuse_picture(name, "the JPEG is broken " + where + " (" + reader.words() + ")");
}

void read_checked_header(JpegReader& reader, FileBytes file, const std::string& name,
                         const DecodeOptions& options) {
  const JpegFrame frame = read_jpeg_markers(file, name);
  check_size(frame.width, frame.height, name, options);
  check(reader.read_header(), reader, name, "in its header");
  if (reader.width() != frame.width || reader.height() != frame.height ||
      reader.components() != static_cast<int>(frame.components)) {
    refuse_picture(name, "the JPEG has two frame headers that do not agree");
  }
}

}  // namespace

bool is_jpeg(FileBytes file) {
  constexpr std::array<uint8_t, 3> start{0xff, 0xd8, 0xff};
  return file.size() >= start.size() && std::memcmp(file.data(), start.data(), start.size()) == 0;
}

uint64_t claimed_jpeg_pixels(FileBytes file) {
  try {
    const JpegFrame frame = read_jpeg_markers(file, "");
    return uint64_t{frame.width} * frame.height;
  } catch (const Error&) {
    return 0;
  }
}

Decoded decode_jpeg(FileBytes file, const std::string& name, const DecodeOptions& options) {
  JpegReader reader(file, options.exif);
  read_checked_header(reader, file, name, options);
  Decoded decoded{.image = empty_image(reader.width(), reader.height())};
  if (options.exif) decoded.orientation = exif_orientation(reader.exif());
  const JpegReader::Step step = reader.read_pixels(decoded.image);
  check(step, reader, name,
        "after row " + std::to_string(reader.rows()) + " of " + std::to_string(reader.height()));
  return decoded;
}

std::optional<ImagePart> decode_jpeg_part(FileBytes file, const std::string& name,
                                          const DecodeOptions& options, const ChooseArea& choose,
                                          std::vector<uint8_t> memory) {
  constexpr std::array<std::byte, 2> end{std::byte{0xff}, std::byte{0xd9}};
  if (!std::ranges::equal(file.last(std::min(file.size(), end.size())), end)) return std::nullopt;
  JpegReader reader(file, options.exif);
  read_checked_header(reader, file, name, options);
  if (!reader.may_skip() || (options.exif && exif_orientation(reader.exif()) != 1)) return std::nullopt;
  const ImageArea blocks = reader.blocks_around(choose(reader.height(), reader.width()));
  ImagePart part{.image = {.width = blocks.width, .height = blocks.height, .pixels = std::move(memory)},
                 .top = blocks.top,
                 .left = blocks.left};
  part.image.pixels.resize(part.image.pixel_count() * 4);
  if (reader.read_part(part.image, blocks) != JpegReader::Step::done) return std::nullopt;
  return part;
}

}  // namespace vitrine
