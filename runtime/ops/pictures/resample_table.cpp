#include "runtime/ops/pictures/resample_table.h"

#include <algorithm>
#include <string>

#include "runtime/graph/op.h"
#include "runtime/util/error.h"
#include "shaders/pictures/resample.h"

namespace vitrine {
namespace {

uint64_t words_of(const ResampleTaps& taps) {
  return taps.lines.size() * VITRINE_RESAMPLE_TAP_WORDS + taps.weights.size();
}

// Returns the word where the list of lines begins.
uint32_t write_taps(const ResampleTaps& taps, std::span<uint32_t> table, size_t& at) {
  const auto lines = to_u32(at);
  const auto weights = to_u32(at + taps.lines.size() * VITRINE_RESAMPLE_TAP_WORDS);
  for (const ResampleTaps::Line& line : taps.lines) {
    table[at++] = line.first;
    table[at++] = line.count;
    table[at++] = weights + line.weight;
  }
  std::ranges::transform(taps.weights, table.begin() + static_cast<std::ptrdiff_t>(at),
                         [](int32_t weight) { return static_cast<uint32_t>(weight); });
  at += taps.weights.size();
  return lines;
}

}  // namespace

ResampleNeeds& ResampleNeeds::operator+=(const ResampleNeeds& other) {
  pixels += other.pixels;
  blocks += other.blocks;
  words += other.words;
  return *this;
}

ResampleNeeds resample_needs(const ResamplePicture& picture) {
  return {.pixels = uint64_t{picture.width} * picture.height,
          .blocks = ceil_div(picture.height, VITRINE_RESAMPLE_BLOCK_ROWS),
          .words = VITRINE_RESAMPLE_PICTURE_WORDS + words_of(picture.columns) + words_of(picture.rows)};
}

void write_resample_table(std::span<const ResamplePicture> pictures, uint64_t blocks,
                          std::span<uint32_t> table) {
  ResampleNeeds needs;
  for (const ResamplePicture& picture : pictures) needs += resample_needs(picture);
  if (needs.blocks > blocks || blocks + needs.words > table.size()) {
    throw Error(ErrorCode::failed, "pictures that need " + std::to_string(needs.blocks) + " blocks and " +
                                       std::to_string(needs.words) + " words were given a table for " +
                                       std::to_string(blocks) + " blocks with " +
                                       std::to_string(table.size()) + " words");
  }
  size_t header = blocks, at = blocks + pictures.size() * VITRINE_RESAMPLE_PICTURE_WORDS;
  uint64_t pixels = 0;
  uint32_t block = 0;
  for (uint32_t i = 0; i < pictures.size(); ++i, header += VITRINE_RESAMPLE_PICTURE_WORDS) {
    const ResamplePicture& picture = pictures[i];
    const auto words = table.subspan(header, VITRINE_RESAMPLE_PICTURE_WORDS);
    words[VITRINE_RESAMPLE_PIXELS] = to_u32(pixels);
    words[VITRINE_RESAMPLE_WIDTH] = picture.width;
    words[VITRINE_RESAMPLE_HEIGHT] = picture.height;
    words[VITRINE_RESAMPLE_FIRST_BLOCK] = block;
    words[VITRINE_RESAMPLE_COLUMNS] = write_taps(picture.columns, table, at);
    words[VITRINE_RESAMPLE_ROWS] = write_taps(picture.rows, table, at);
    words[VITRINE_RESAMPLE_LEFT] = picture.columns.begin;
    words[VITRINE_RESAMPLE_RIGHT] = picture.columns.end;
    words[VITRINE_RESAMPLE_TOP] = picture.rows.begin;
    words[VITRINE_RESAMPLE_BOTTOM] = picture.rows.end;
    words[VITRINE_RESAMPLE_FILL] = picture.fill;
    const ResampleNeeds own = resample_needs(picture);
    std::ranges::fill(table.subspan(block, own.blocks), i);
    pixels += own.pixels;
    block += to_u32(own.blocks);
  }
  std::ranges::fill(table.subspan(block, blocks - block), VITRINE_RESAMPLE_UNUSED);
}

}  // namespace vitrine
