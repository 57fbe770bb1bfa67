#include "runtime/ops/pictures/resample.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>

#include "runtime/ops/pictures/byte_values.h"
#include "runtime/ops/pictures/pixel_values.h"
#include "runtime/ops/pictures/reference_resample.h"
#include "runtime/ops/pictures/resample_table.h"
#include "runtime/util/error.h"
#include "tests/support/noise_picture.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;

// Taps as a filter of `support` pixels has them, with random weights that sum to about one and overshoot
// on both sides. Lines outside [begin, end) have none.
ResampleTaps random_taps(uint32_t from, uint32_t to, double support, uint64_t seed, uint32_t begin = 0,
                         uint32_t end = ~0u) {
  std::mt19937_64 engine(seed);
  ResampleTaps taps;
  taps.begin = begin;
  taps.end = std::min(end, to);
  for (uint32_t i = 0; i < to; ++i) {
    ResampleTaps::Line line;
    if (i >= taps.begin && i < taps.end) {
      const double center = (i + 0.5) * from / to;
      line.first = static_cast<uint32_t>(std::max(center - support, 0.0));
      line.first = std::min(line.first, from - 1);
      line.count = std::clamp(static_cast<uint32_t>(2 * support), 1u, from - line.first);
      line.weight = static_cast<uint32_t>(taps.weights.size());
      for (uint32_t k = 0; k < line.count; ++k) {
        const auto random = static_cast<double>(engine() >> 11) * 0x1p-53;
        taps.weights.push_back(static_cast<int32_t>((random * 2.0 - 0.2) * (1 << 22) / line.count));
      }
    }
    taps.lines.push_back(line);
  }
  return taps;
}

struct Batch {
  std::vector<ResamplePicture> pictures;
  std::vector<uint32_t> pixels;
  uint64_t blocks = 0;  // room, more than is needed
  std::vector<uint32_t> table;
};

struct Size {
  uint32_t width, height;
};

Batch make_batch(const std::vector<Size>& sizes, uint32_t columns, uint32_t rows, double support,
                 bool padded = false) {
  Batch batch;
  ResampleNeeds needs;
  uint64_t seed = 7 * columns + rows;
  for (const auto [width, height] : sizes) {
    if (width == 0) {  // none
      batch.pictures.emplace_back();
      needs += resample_needs(batch.pictures.back());
      continue;
    }
    ResamplePicture picture{.width = width, .height = height, .columns = {}, .rows = {}};
    const bool pad = padded && seed % 2 == 0;
    picture.columns = random_taps(width, columns, support, ++seed, pad ? 1 : 0, pad ? columns - 2 : ~0u);
    picture.rows = random_taps(height, rows, support, ++seed, pad ? 2 : 0, pad ? rows - 1 : ~0u);
    picture.fill = pad ? 0xff030201u : 0xff000000u;
    const std::vector<uint32_t> pixels = test::noise_picture(seed, width, height);
    batch.pixels.insert(batch.pixels.end(), pixels.begin(), pixels.end());
    needs += resample_needs(picture);
    batch.pictures.push_back(std::move(picture));
    ++seed;
  }
  batch.blocks = needs.blocks + 2;
  batch.table.assign(batch.blocks + needs.words + 5, 0xdeadbeef);
  write_resample_table(batch.pictures, batch.blocks, batch.table);
  batch.pixels.resize(batch.pixels.size() + 3, 0xdeadbeef);
  return batch;
}

HostTensor words(const std::vector<uint32_t>& values, Shape shape) {
  return {shape, DType::u32, std::vector<double>(values.begin(), values.end())};
}
HostTensor words(const std::vector<uint32_t>& values) { return words(values, {values.size()}); }

void check(const Batch& batch) {
  uint64_t columns = 0, rows = 0;
  for (const ResamplePicture& picture : batch.pictures) {
    columns = std::max(columns, picture.columns.lines.size());
    rows = std::max(rows, picture.rows.lines.size());
  }
  const std::vector<uint32_t> middle = reference::resample_rows(batch.pictures, batch.pixels, batch.blocks);
  const std::vector<uint32_t> result = reference::resample_columns(batch.pictures, middle);
  INFO(batch.pictures.size() << " pictures to " << columns << " x " << rows);

  test::OpCase across;
  across.label = "rows";
  across.exact = true;
  across.inputs = {{words(batch.pixels)}, {words(batch.table)}};
  across.expected = {words(middle).values};
  across.build = [&](Graph& graph, std::span<const ValueId> in) {
    return std::vector{
        resample_rows(graph, "rows", in[0], in[1], {.blocks = batch.blocks, .width = columns})};
  };
  test::check_op(op_resample_rows, across);

  test::OpCase down;
  down.label = "columns";
  down.exact = true;
  down.inputs = {{words(middle, {batch.blocks, 64, columns})}, {words(batch.table)}};
  down.expected = {words(result).values};
  down.build = [&](Graph& graph, std::span<const ValueId> in) {
    return std::vector{resample_columns(graph, "columns", in[0], in[1], batch.pictures.size(), rows)};
  };
  test::check_op(op_resample_columns, down);
}

TEST_CASE("resample equals the plain loops for a batch of pictures of any size") {
  check(make_batch({{403, 301}}, 224, 224, 3.6));
  check(make_batch({{31, 65}, {1, 1}, {97, 64}, {64, 1}, {1, 129}}, 37, 29, 2));
  check(make_batch({{200, 130}, {640, 480}}, 65, 63, 14.9));
}

TEST_CASE("resample equals the plain loops for sizes of one") {
  check(make_batch({{5, 3}, {1, 1}, {3, 90}, {90, 3}}, 1, 2, 1));
  check(make_batch({{7, 300}}, 2, 1, 150));
}

TEST_CASE("resample fills what the picture does not cover") {
  check(make_batch({{20, 30}, {21, 31}, {22, 70}}, 41, 67, 2, true));
}

TEST_CASE("resample leaves what pictures that are none have in the result") {
  check(make_batch({{0, 0}, {20, 30}, {0, 0}, {0, 0}, {61, 70}, {0, 0}}, 23, 31, 2, true));
}

TEST_CASE("byte_values looks every byte of planes up in its channel's row") {
  for (const BytePictures size : {BytePictures{1, 1, 1}, {3, 17, 23}, {2, 28, 28}, {5, 1, 7}}) {
    for (const uint64_t channels : {1, 3}) {
      const uint64_t plane = size.height * size.width, count = size.pictures * channels * plane;
      const HostTensor values = test::random_tensor({channels, 256}, DType::f32, 5);
      const std::vector<uint32_t> bytes = test::noise_picture(3, static_cast<uint32_t>((count + 3) / 4), 1);
      test::OpCase result;
      result.label = std::to_string(count) + " bytes in planes of " + std::to_string(plane);
      result.exact = true;
      result.inputs = {{words(bytes)}, {values}};
      std::vector<double> expected;
      for (uint64_t i = 0; i < count; ++i)
        expected.push_back(values.values[i / plane % channels * 256 + (bytes[i / 4] >> (8 * (i % 4)) & 255)]);
      result.expected = {expected};
      result.build = [size](Graph& graph, std::span<const ValueId> in) {
        return std::vector{byte_values(graph, "y", in[0], in[1], size)};
      };
      test::check_op(op_byte_values, result);
    }
  }
  Graph graph;
  CHECK_THROWS_AS(
      byte_values(graph, "y", graph.input("x", {3}, DType::u32), graph.input("v", {1, 256}), {1, 1, 7}),
      Error);
}

TEST_CASE("a table without enough room is refused") {
  const Batch batch = make_batch({{20, 30}, {20, 90}}, 8, 8, 2);
  std::vector<uint32_t> table(batch.table.size());
  CHECK_THROWS_AS(write_resample_table(batch.pictures, 2, table), Error);
  CHECK_THROWS_AS(write_resample_table(batch.pictures, batch.blocks, std::span(table).first(60)), Error);
}

TEST_CASE("pixel_values looks every byte up in its channel's row") {
  for (const uint64_t channels : {1, 3, 4}) {
    const Shape shape{2, 17, 23};
    const HostTensor values = test::random_tensor({channels, 256}, DType::f32, 5);
    const std::vector<uint32_t> pixels = test::noise_picture(3, 23, 34);
    test::OpCase result;
    result.label = std::to_string(channels) + " channels";
    result.exact = true;
    result.inputs = {{words(pixels, shape)}, {values}};
    std::vector<double> expected;
    for (uint64_t b = 0; b < 2; ++b) {
      for (uint64_t c = 0; c < channels; ++c) {
        for (uint64_t i = 0; i < 17 * 23; ++i)
          expected.push_back(values.values[c * 256 + (pixels[b * 17 * 23 + i] >> (8 * c) & 255)]);
      }
    }
    result.expected = {expected};
    result.build = [](Graph& graph, std::span<const ValueId> in) {
      return std::vector{pixel_values(graph, "y", in[0], in[1])};
    };
    test::check_op(op_pixel_values, result);
  }
}

TEST_CASE("resample names what does not fit") {
  Graph graph;
  const ValueId pixels = graph.input("pixels", {100}, DType::u32);
  const ValueId table = graph.input("table", {100}, DType::u32);
  const auto says = [](const char* text) {
    return Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring(text));
  };
  CHECK_THROWS_MATCHES(resample_rows(graph, "a", graph.input("x", {4}), table, {.blocks = 1, .width = 1}),
                       Error, says("f32"));
  CHECK_THROWS_MATCHES(resample_rows(graph, "b", pixels, table, {.blocks = 0, .width = 1}), Error,
                       says("0 blocks"));
  CHECK_THROWS_MATCHES(resample_columns(graph, "c", pixels, table, 1, 1), Error, says("64"));
  const ValueId rows = resample_rows(graph, "d", pixels, table, {.blocks = 1, .width = 5});
  CHECK_THROWS_MATCHES(resample_columns(graph, "e", rows, table, 0, 1), Error, says("0 pictures"));
  CHECK_THROWS_MATCHES(pixel_values(graph, "f", rows, graph.input("v", {3, 255})), Error, says("255"));
}

}  // namespace
}  // namespace vitrine
