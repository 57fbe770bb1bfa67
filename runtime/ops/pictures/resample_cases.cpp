#include <utility>

#include "runtime/check/cases.h"
#include "runtime/ops/pictures/reference_resample.h"
#include "runtime/ops/pictures/resample.h"
#include "runtime/ops/pictures/resample_table.h"
#include "shaders/pictures/resample.h"

namespace vitrine {

using namespace cases;

namespace {

constexpr uint32_t columns = 37, rows = 29;

// Lines of `count` pixels each, with random weights that sum to about one and overshoot on both sides. The
// outermost lines are not of the picture.
ResampleTaps some_taps(uint32_t from, uint32_t to, uint32_t count, uint64_t seed) {
  ResampleTaps taps{.lines = std::vector<ResampleTaps::Line>(to), .weights = {}, .begin = 1, .end = to - 2};
  for (const double weight : random_tensor({to, count}, DType::f32, seed, -0.2, 1.8).values)
    taps.weights.push_back(static_cast<int32_t>(weight * (1 << VITRINE_RESAMPLE_PRECISION) / count));
  for (uint32_t i = taps.begin; i < taps.end; ++i)
    taps.lines[i] = {.first = i * (from - count) / to, .count = count, .weight = i * count};
  return taps;
}

struct Batch {
  std::vector<ResamplePicture> pictures;
  std::vector<uint32_t> pixels, table;
  uint64_t blocks = 0;
};

// Two pictures, one of more rows than a block has, between them one that is none, and room for more.
Batch two_pictures() {
  Batch batch;
  ResampleNeeds needs;
  for (const auto& [width, height] : {std::pair<uint32_t, uint32_t>{31, 65}, {0, 0}, {97, 40}}) {
    ResamplePicture& picture = batch.pictures.emplace_back();
    if (width == 0) {
      needs += resample_needs(picture);
      continue;
    }
    picture.width = width;
    picture.height = height;
    picture.columns = some_taps(width, columns, 5, width);
    picture.rows = some_taps(height, rows, 3, height);
    picture.fill = 0xff030201;
    needs += resample_needs(picture);
  }
  for (const double pixel : random_tensor({needs.pixels}, DType::u32, 1, 0, 0x1000000).values)
    batch.pixels.push_back(0xff000000 | static_cast<uint32_t>(pixel));
  batch.blocks = needs.blocks + 1;
  batch.table.resize(batch.blocks + needs.words);
  write_resample_table(batch.pictures, batch.blocks, batch.table);
  return batch;
}

HostTensor words(Shape shape, const std::vector<uint32_t>& values) {
  return {shape, DType::u32, std::vector<double>(values.begin(), values.end())};
}
HostTensor words(const std::vector<uint32_t>& values) { return words({values.size()}, values); }

}  // namespace

std::vector<OpCase> resample_rows_cases() {
  const Batch batch = two_pictures();
  const std::vector<uint32_t> across = reference::resample_rows(batch.pictures, batch.pixels, batch.blocks);
  return {exactly(
      one_result("two pictures", {{words(batch.pixels)}, {words(batch.table)}}, words(across).values,
                 [blocks = batch.blocks](Graph& graph, std::span<const ValueId> ids) {
                   return resample_rows(graph, "y", ids[0], ids[1], {.blocks = blocks, .width = columns});
                 }))};
}

std::vector<OpCase> resample_columns_cases() {
  const Batch batch = two_pictures();
  const std::vector<uint32_t> across = reference::resample_rows(batch.pictures, batch.pixels, batch.blocks);
  const std::vector<uint32_t> down = reference::resample_columns(batch.pictures, across);
  return {exactly(one_result(
      "two pictures",
      {{words({batch.blocks, VITRINE_RESAMPLE_BLOCK_ROWS, columns}, across)}, {words(batch.table)}},
      words(down).values, [](Graph& graph, std::span<const ValueId> ids) {
        return resample_columns(graph, "y", ids[0], ids[1], 3, rows);
      }))};
}

}  // namespace vitrine
