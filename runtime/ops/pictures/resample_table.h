// The host's side of resample.h: which source pixels make up each output column and row of every picture
// of a batch, and with which weights, as the words that the shaders read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vitrine {

// One direction of a resize. Output line i is the sum over k of weights[line.weight + k] times source pixel
// line.first + k, in units of 2^-22.
struct ResampleTaps {
  struct Line {
    uint32_t first = 0, count = 0, weight = 0;
  };
  std::vector<Line> lines;
  std::vector<int32_t> weights;
  // The lines [begin, end) come from the picture; the others get the picture's fill.
  uint32_t begin = 0, end = 0;
};

// Without lines it is none: its place in the result is left as it is.
struct ResamplePicture {
  uint32_t width = 0, height = 0;  // of the source pixels
  ResampleTaps columns, rows;
  uint32_t fill = 0xff000000;  // a pixel
};

// What the pictures of a batch take up: of "pixels", of the intermediate's blocks, of the table. Each may
// have more room than that.
struct ResampleNeeds {
  uint64_t pixels = 0;
  uint64_t blocks = 0;
  uint64_t words = 0;  // beside the blocks: the table has words + its room for blocks
  ResampleNeeds& operator+=(const ResampleNeeds& other);
};
ResampleNeeds resample_needs(const ResamplePicture& picture);

// Writes the table of `pictures` pictures whose pixels follow one another. `blocks` is the room that the
// graph was built with; the table must have room for blocks + the sum of the needs' words, else
// Error(failed).
class ResampleTableWriter {
 public:
  ResampleTableWriter(std::span<uint32_t> table, uint64_t blocks, uint64_t pictures);
  void add(const ResamplePicture& picture);
  // After the last one.
  void finish();

 private:
  std::span<uint32_t> table_;
  uint64_t blocks_, header_, at_;
  uint64_t pixels_ = 0;
  uint32_t block_ = 0, picture_ = 0;
};
void write_resample_table(std::span<const ResamplePicture> pictures, uint64_t blocks,
                          std::span<uint32_t> table);

}  // namespace vitrine
