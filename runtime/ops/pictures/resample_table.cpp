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
uint32_t write_taps(const ResampleTaps& taps, std::span<uint32_t> table, uint64_t& at) {
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

ResampleTableWriter::ResampleTableWriter(std::span<uint32_t> table, uint64_t blocks, uint64_t pictures)
    : table_(table),
      blocks_(blocks),
      header_(blocks),
      at_(blocks + pictures * VITRINE_RESAMPLE_PICTURE_WORDS) {}

void ResampleTableWriter::add(const ResamplePicture& picture) {
  const ResampleNeeds own = resample_needs(picture);
  const uint64_t lists = own.words - VITRINE_RESAMPLE_PICTURE_WORDS;
  if (block_ + own.blocks > blocks_ || at_ + lists > table_.size()) {
    throw Error(ErrorCode::failed, "pictures that need " + std::to_string(block_ + own.blocks) +
                                       " blocks and " + std::to_string(at_ + lists - blocks_) +
                                       " words were given a table for " + std::to_string(blocks_) +
                                       " blocks with " + std::to_string(table_.size()) + " words");
  }
  const auto words = table_.subspan(header_, VITRINE_RESAMPLE_PICTURE_WORDS);
  header_ += VITRINE_RESAMPLE_PICTURE_WORDS;
  const uint32_t number = picture_++;
  if (picture.columns.lines.empty()) {
    std::ranges::fill(words, 0u);
    return;
  }
  words[VITRINE_RESAMPLE_PIXELS] = to_u32(pixels_);
  words[VITRINE_RESAMPLE_WIDTH] = picture.width;
  words[VITRINE_RESAMPLE_HEIGHT] = picture.height;
  words[VITRINE_RESAMPLE_FIRST_BLOCK] = block_;
  words[VITRINE_RESAMPLE_COLUMNS] = write_taps(picture.columns, table_, at_);
  words[VITRINE_RESAMPLE_ROWS] = write_taps(picture.rows, table_, at_);
  words[VITRINE_RESAMPLE_LEFT] = picture.columns.begin;
  words[VITRINE_RESAMPLE_RIGHT] = picture.columns.end;
  words[VITRINE_RESAMPLE_TOP] = picture.rows.begin;
  words[VITRINE_RESAMPLE_BOTTOM] = picture.rows.end;
  words[VITRINE_RESAMPLE_FILL] = picture.fill;
  std::ranges::fill(table_.subspan(block_, own.blocks), number);
  pixels_ += own.pixels;
  block_ += to_u32(own.blocks);
}

void ResampleTableWriter::finish() {
  std::ranges::fill(table_.subspan(block_, blocks_ - block_), VITRINE_RESAMPLE_UNUSED);
}

void write_resample_table(std::span<const ResamplePicture> pictures, uint64_t blocks,
                          std::span<uint32_t> table) {
  ResampleTableWriter writer(table, blocks, pictures.size());
  for (const ResamplePicture& picture : pictures) writer.add(picture);
  writer.finish();
}

}  // namespace vitrine
