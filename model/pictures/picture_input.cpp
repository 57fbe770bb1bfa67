#include "model/pictures/picture_input.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "model/pictures/host_resample.h"
#include "runtime/graph/op.h"
#include "runtime/ops/pictures/pixel_values.h"
#include "runtime/ops/pictures/resample.h"
#include "runtime/util/error.h"
#include "shaders/pictures/resample.h"

namespace vitrine {
namespace {

std::span<uint32_t> as_words(std::span<std::byte> bytes) {
  return {reinterpret_cast<uint32_t*>(bytes.data()), bytes.size() / sizeof(uint32_t)};
}

}  // namespace

PictureCapacity PictureCapacity::covering(const ResampleNeeds& needs, const PictureCapacity& largest) {
  const auto cover = [](uint64_t need, uint64_t least, uint64_t most) {
    return std::max(need, std::min(std::bit_ceil(std::max(need, least)), most));
  };
  return {.pixels = cover(needs.pixels, 1 << 16, largest.pixels),
          .blocks = cover(needs.blocks, 4, largest.blocks),
          .words = cover(needs.words, 1 << 12, largest.words)};
}

PictureCapacity PictureCapacity::largest(const Capabilities& device, uint64_t width) {
  // 256 MiB of pixels keep any device busy, and the inputs exist twice.
  const uint64_t words = std::min<uint64_t>(device.max_storage_range / 4, 1 << 26);
  return {.pixels = words,
          .blocks = words / VITRINE_RESAMPLE_BLOCK_ROWS / std::max<uint64_t>(width, 1),
          .words = words / 2};
}

bool PictureCapacity::holds(const ResampleNeeds& needs) const {
  return needs.pixels <= pixels && needs.blocks <= blocks && needs.words <= words;
}

ValueId add_resized_pictures(Graph& graph, const Preprocess& preprocess, uint64_t batch,
                             const PictureCapacity& capacity) {
  const ValueId pixels = graph.input("pixels", {capacity.pixels}, DType::u32);
  const ValueId table = graph.input("resample", {capacity.blocks + capacity.words}, DType::u32);
  const ValueId rows = resample_rows(graph, "preprocess.rows", pixels, table,
                                     {.blocks = capacity.blocks, .width = preprocess.width()});
  return resample_columns(graph, "preprocess.columns", rows, table, batch, preprocess.height());
}

PictureInput add_picture_input(Graph& graph, const Preprocess& preprocess, uint64_t channels, uint64_t batch,
                               const PictureCapacity& capacity) {
  const ValueId resized = add_resized_pictures(graph, preprocess, batch, capacity);
  const ValueId values = graph.input("values", {channels, 256});
  return {resized, pixel_values(graph, "preprocess.values", resized, values)};
}

void require_size(const Preprocess& preprocess, uint64_t height, uint64_t width) {
  if (preprocess.height() == height && preprocess.width() == width) return;
  throw Error(ErrorCode::usage, preprocess.profile + ": found pictures of " +
                                    std::to_string(preprocess.width()) + " x " +
                                    std::to_string(preprocess.height()) + " pixels, expected the model's " +
                                    std::to_string(width) + " x " + std::to_string(height));
}

PicturePart prepare_part(const Preprocess& preprocess, Picture picture, const PictureCapacity& largest,
                         const std::string& name) {
  if (picture.width == 0 || picture.height == 0 ||
      picture.pixels.size() != uint64_t{4} * picture.width * picture.height) {
    throw Error(ErrorCode::failed, name + ": found " + std::to_string(picture.pixels.size()) + " bytes for " +
                                       std::to_string(picture.width) + " x " +
                                       std::to_string(picture.height) + " pixels, expected four a pixel");
  }
  PreparedPicture prepared = prepare_picture(preprocess, picture.height, picture.width, name);
  return part_of(std::make_shared<const Picture>(std::move(picture)), std::move(prepared), largest);
}

PicturePart part_of(std::shared_ptr<const Picture> picture, PreparedPicture prepared,
                    const PictureCapacity& largest) {
  if (largest.holds(resample_needs(prepared.resample)))
    return {.picture = std::move(picture), .prepared = std::move(prepared)};
  const auto width = static_cast<uint32_t>(prepared.resample.columns.lines.size());
  auto small = std::make_shared<const Picture>(picture_of(resized_on_host(*picture, prepared), width));
  prepared = unchanged_picture(small->height, small->width);
  return {.picture = std::move(small), .prepared = std::move(prepared)};
}

std::vector<uint32_t> resized_on_host(const Picture& picture, const PreparedPicture& prepared) {
  std::vector<uint32_t> result;
  resample_on_host(picture.pixels, picture.width, prepared, result);
  return result;
}

Picture picture_of(std::span<const uint32_t> pixels, uint32_t width, std::vector<uint8_t> memory) {
  Picture picture{
      .width = width, .height = static_cast<uint32_t>(pixels.size() / width), .pixels = std::move(memory)};
  picture.pixels.resize(pixels.size_bytes());
  std::memcpy(picture.pixels.data(), pixels.data(), pixels.size_bytes());
  return picture;
}

void write_resized_input(Executable& executable, uint32_t set, std::span<const PicturePart> parts,
                         uint64_t batch, uint64_t first) {
  const Graph& graph = *executable.plan().graph;
  std::byte* to = executable.input(executable.input_index("pixels"), set).data();
  const uint64_t blocks = graph.value(graph.find("preprocess.rows")).shape[0];
  ResampleTableWriter table(as_words(executable.input(executable.input_index("resample"), set)), blocks,
                            batch);
  for (uint64_t i = 0; i < batch; ++i) {
    if (i < first || i - first >= parts.size()) {
      table.add({});
      continue;
    }
    const PicturePart& part = parts[i - first];
    const ResamplePicture& resample = part.prepared.resample;
    const size_t row_bytes = size_t{4} * resample.width;
    for (uint64_t y = 0; y < resample.height; ++y) {
      const uint64_t from = (part.prepared.top + y) * part.picture->width + part.prepared.left;
      std::memcpy(to, part.picture->pixels.data() + 4 * from, row_bytes);
      to += row_bytes;
    }
    table.add(resample);
  }
  table.finish();
}

void write_picture_input(Executable& executable, uint32_t set, std::span<const PicturePart> parts,
                         std::span<const float> values) {
  write_resized_input(executable, set, parts, parts.size(), 0);
  const auto bytes = std::as_bytes(values);
  std::ranges::copy(bytes, executable.input(executable.input_index("values"), set).begin());
}

}  // namespace vitrine
