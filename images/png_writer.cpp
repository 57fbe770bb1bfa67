#include "images/png_writer.h"

#include <png.h>

#include <array>
#include <csetjmp>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "runtime/util/text.h"

namespace vitrine {
namespace {

class PngWriter {
 public:
  explicit PngWriter(std::vector<std::byte>& file) : file_(file) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
  }
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;

  bool write(uint32_t width, uint32_t height, uint32_t channels, const uint8_t* bytes) {
    if (info_ == nullptr || setjmp(jump_) != 0) return false;
    run(width, height, channels, bytes);
    return true;
  }
  // What was thrown where the bytes go, if that was the reason: it could not pass through libpng.
  std::exception_ptr thrown() const { return thrown_; }
  const char* words() const { return info_ == nullptr ? "out of memory" : words_.data(); }

 private:
  // libpng's errors jump out of here, past destructors: no object may be made that has one.
  void run(uint32_t width, uint32_t height, uint32_t channels, const uint8_t* bytes) {
    const int color = channels == 1   ? PNG_COLOR_TYPE_GRAY
                      : channels == 3 ? PNG_COLOR_TYPE_RGB
                                      : PNG_COLOR_TYPE_RGB_ALPHA;
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_write_fn(png_, this, on_write, on_flush);
    png_set_IHDR(png_, info_, width, height, 8, color, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png_, info_);
    for (uint32_t y = 0; y < height; y++) png_write_row(png_, bytes + size_t{y} * width * channels);
    png_write_end(png_, nullptr);
  }

  static PngWriter& from(png_structp png) { return *static_cast<PngWriter*>(png_get_error_ptr(png)); }
  static void on_error(png_structp png, png_const_charp words) {
    PngWriter& writer = from(png);
    std::strncpy(writer.words_.data(), words, writer.words_.size() - 1);
    std::longjmp(writer.jump_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_flush(png_structp) {}
  static void on_write(png_structp png, png_bytep bytes, size_t count) {
    if (!from(png).pass_on(reinterpret_cast<const std::byte*>(bytes), count)) png_error(png, "not written");
  }
  bool pass_on(const std::byte* bytes, size_t count) noexcept {
    try {
      file_.insert(file_.end(), bytes, bytes + count);
      return true;
    } catch (...) {
      thrown_ = std::current_exception();
      return false;
    }
  }

  std::vector<std::byte>& file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf jump_;
  std::array<char, 100> words_{};
  std::exception_ptr thrown_;
};

}  // namespace

std::vector<std::byte> png_of(uint32_t width, uint32_t height, uint32_t channels,
                              std::span<const uint8_t> bytes, const std::string& name) {
  const bool fits = (channels == 1 || channels == 3 || channels == 4) && width > 0 && height > 0 &&
                    bytes.size() == uint64_t{width} * height * channels;
  if (!fits) {
    throw Error(ErrorCode::usage, "cannot write " + name + ": " + std::to_string(bytes.size()) +
                                      " bytes are no picture of " + std::to_string(width) + "x" +
                                      std::to_string(height) + " pixels with " + std::to_string(channels) +
                                      " channels (1, 3 or 4)");
  }
  std::vector<std::byte> file;
  PngWriter writer(file);
  if (!writer.write(width, height, channels, bytes.data())) {
    if (writer.thrown()) std::rethrow_exception(writer.thrown());
    throw Error(ErrorCode::failed, "cannot write " + name + ": " + writer.words());
  }
  return file;
}

void write_png(const std::filesystem::path& path, uint32_t width, uint32_t height, uint32_t channels,
               std::span<const uint8_t> bytes) {
  write_file_atomically(path, png_of(width, height, channels, bytes, shown(path)));
}

}  // namespace vitrine
