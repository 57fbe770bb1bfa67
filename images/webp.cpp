// WebP through libwebp. Of an animation the first frame is taken; the demultiplexer finds it, and
// proves that the file is whole.
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "images/decoders.h"
#include "images/exif.h"

namespace vitrine {
namespace {

using Demuxer = std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)>;

class FirstFrame {
 public:
  explicit FirstFrame(const WebPDemuxer* demuxer) : there_(WebPDemuxGetFrame(demuxer, 1, &frame_) != 0) {}
  ~FirstFrame() { WebPDemuxReleaseIterator(&frame_); }
  FirstFrame(const FirstFrame&) = delete;
  FirstFrame& operator=(const FirstFrame&) = delete;

  explicit operator bool() const { return there_; }
  const WebPIterator* operator->() const { return &frame_; }

 private:
  WebPIterator frame_{};
  bool there_;
};

std::string_view words(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "out of memory";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "a feature that libwebp does not have";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "not enough data";
    default:
      return "broken data";
  }
}

int orientation_of(const WebPDemuxer* demuxer) {
  int orientation = 1;
  WebPChunkIterator chunk;
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) != 0) {
    orientation = exif_orientation({reinterpret_cast<const std::byte*>(chunk.chunk.bytes), chunk.chunk.size});
  }
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

}  // namespace

bool is_webp(FileBytes file) {
  if (file.size() < 16) return false;
  const std::string_view start(reinterpret_cast<const char*>(file.data()), 16);
  const std::string_view kind = start.substr(12);
  return start.starts_with("RIFF") && start.substr(8, 4) == "WEBP" &&
         (kind == "VP8 " || kind == "VP8L" || kind == "VP8X");
}

uint64_t claimed_webp_pixels(FileBytes file) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(reinterpret_cast<const uint8_t*>(file.data()), file.size(), &features) !=
      VP8_STATUS_OK) {
    return 0;
  }
  return static_cast<uint64_t>(features.width) * static_cast<uint64_t>(features.height);
}

Decoded decode_webp(FileBytes file, const std::string& name, const DecodeOptions& options) {
  const WebPData data{.bytes = reinterpret_cast<const uint8_t*>(file.data()), .size = file.size()};
  const Demuxer demuxer(WebPDemux(&data), &WebPDemuxDelete);
  if (!demuxer) {
    WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
    const Demuxer part(WebPDemuxPartial(&data, &state), &WebPDemuxDelete);
    refuse_picture(name, state == WEBP_DEMUX_PARSE_ERROR
                             ? "the WebP's chunks are broken"
                             : "the WebP ends after " + std::to_string(file.size()) +
                                   " bytes, before its chunks do: the file is truncated");
  }
  const uint32_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const uint32_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  check_size(width, height, name, options);
  const FirstFrame frame(demuxer.get());
  if (!frame) refuse_picture(name, "the WebP has no picture");
  // The demultiplexer has checked that the frame lies inside; memory is not written on trust.
  const auto left = static_cast<uint32_t>(frame->x_offset), top = static_cast<uint32_t>(frame->y_offset);
  const auto columns = static_cast<uint32_t>(frame->width), rows = static_cast<uint32_t>(frame->height);
  if (left > width || columns > width - left || top > height || rows > height - top) {
    refuse_picture(name, "the WebP's first frame does not lie inside its picture");
  }

  Decoded decoded{.image = empty_image(width, height)};
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) refuse_picture(name, "libwebp is older than its headers");
  const size_t stride = size_t{width} * 4, first = (size_t{top} * width + left) * 4;
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {.rgba = decoded.image.pixels.data() + first,
                          .stride = static_cast<int>(stride),
                          .size = decoded.image.pixels.size() - first};
  const VP8StatusCode status = WebPDecode(frame->fragment.bytes, frame->fragment.size, &config);
  if (status != VP8_STATUS_OK) {
    refuse_picture(name, "the WebP's pixels are broken (" + std::string(words(status)) + ")");
  }
  // Also where the file says that it has no alpha: lossless pixels may hold some all the same.
  for (size_t i = 3; i < decoded.image.pixels.size(); i += 4) decoded.image.pixels[i] = 255;
  if (options.exif) decoded.orientation = orientation_of(demuxer.get());
  return decoded;
}

}  // namespace vitrine
