#include "runtime/ops/pictures/apply_operation.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "runtime/ops/pictures/host_operation.h"
#include "runtime/ops/pictures/reference_operation.h"
#include "runtime/util/error.h"
#include "tests/support/noise_picture.h"
#include "tests/support/op_test.h"

namespace vitrine {
namespace {

using test::HostTensor;
using Kind = PictureOperationKind;

HostTensor words(const std::vector<uint32_t>& values, Shape shape) {
  return {shape, DType::u32, std::vector<double>(values.begin(), values.end())};
}

// Pictures of one size, each with an operation that is one of several.
struct Batch {
  uint32_t width = 0, height = 0;
  std::vector<PictureOperation> operations;
  std::vector<uint32_t> pixels, operation_words, tables, results;
};

// The tables' and the pictures' expectations come from the same plain loops, so that the second operator is
// tested alone.
Batch batch_of(uint32_t width, uint32_t height, const std::vector<PictureOperation>& operations,
               uint64_t position, uint64_t count, const auto& picture_of) {
  Batch batch{.width = width,
              .height = height,
              .operations = operations,
              .pixels = {},
              .operation_words = {},
              .tables = {},
              .results = {}};
  for (size_t i = 0; i < operations.size(); ++i) {
    const std::vector<uint32_t> picture = picture_of(i);
    batch.pixels.insert(batch.pixels.end(), picture.begin(), picture.end());
    for (uint64_t k = 0; k < count; ++k) {
      // Words at other places that would be another operation.
      std::vector<uint32_t> own(VITRINE_OPERATION_WORDS);
      write_operation(k == position ? operations[i] : PictureOperation{.kind = Kind::invert}, width, height,
                      own);
      batch.operation_words.insert(batch.operation_words.end(), own.begin(), own.end());
    }
    std::vector<uint32_t> table = reference::operation_table(operations[i], picture);
    if (table.empty()) table.assign(256, reference::unwritten_word);
    batch.tables.insert(batch.tables.end(), table.begin(), table.end());
    const std::vector<uint32_t> result = reference::operation_result(operations[i], picture, width, height);
    batch.results.insert(batch.results.end(), result.begin(), result.end());
  }
  return batch;
}

// What is done on the host gives the same pictures.
void check_on_host(const Batch& batch) {
  const size_t each = size_t{batch.width} * batch.height;
  std::vector<uint32_t> memory;
  for (size_t i = 0; i < batch.operations.size(); ++i) {
    INFO("operation " << i << " of kind " << static_cast<int>(batch.operations[i].kind));
    std::vector<uint32_t> picture(batch.pixels.begin() + i * each, batch.pixels.begin() + (i + 1) * each);
    apply_on_host(batch.operations[i], picture, batch.width, batch.height, memory);
    CHECK(std::equal(picture.begin(), picture.end(), batch.results.begin() + i * each));
  }
}

void check(const Batch& batch, uint64_t position, uint64_t count, const ApplyOperationOptions& options = {}) {
  check_on_host(batch);
  const uint64_t pictures = batch.operations.size();
  INFO(pictures << " pictures of " << batch.width << " x " << batch.height);
  const Shape shape{pictures, batch.height, batch.width};
  const HostTensor pixels = words(batch.pixels, shape),
                   operations = words(batch.operation_words, {pictures, count, VITRINE_OPERATION_WORDS}),
                   tables = words(batch.tables, {pictures, 256});
  test::OpCase of_tables{
      .label = "tables", .inputs = {{pixels}, {operations}}, .expected = {tables.values}, .exact = true};
  of_tables.build = [=](Graph& graph, std::span<const ValueId> in) {
    return std::vector{operation_tables(graph, "y", in[0], in[1], position)};
  };
  if (std::ranges::any_of(batch.tables, [](uint32_t word) { return word != reference::unwritten_word; }))
    test::check_op(op_operation_tables, of_tables);

  test::OpCase of_pixels{.label = "pixels",
                         .inputs = {{pixels}, {operations}, {tables}},
                         .expected = {words(batch.results, shape).values},
                         .exact = true};
  of_pixels.build = [=](Graph& graph, std::span<const ValueId> in) {
    ApplyOperationOptions own = options;
    own.operation = position;
    return std::vector{apply_operation(graph, "y", in[0], in[1], in[2], own)};
  };
  test::check_op(op_apply_operation, of_pixels);
}

// A number of a few digits: products with bytes and halves come to whole numbers often, so that the last bit
// of a double decides of a byte.
double round_number(std::mt19937_64& engine, double low, double high) {
  const double at = low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53;
  return std::round(at * 200) / 200;
}
double any_number(std::mt19937_64& engine, double low, double high) {
  return low + (high - low) * static_cast<double>(engine() >> 11) * 0x1p-53;
}

AffineMatrix some_matrix(std::mt19937_64& engine, size_t i, uint32_t width, uint32_t height) {
  const auto number = i % 2 == 0 ? round_number : any_number;
  switch (i / 2 % 4) {
    case 0:
      return {1, number(engine, -0.99, 0.99), 0, 0, 1, 0};
    case 1:
      return {1, 0, 0, number(engine, -0.99, 0.99), 1, 0};
    case 2:
      return {1, 0, number(engine, -0.5, 0.5) * width, 0, 1, number(engine, -0.5, 0.5) * height};
    default: {
      const double angle = number(engine, -3.14, 3.14), c = std::cos(angle), s = std::sin(angle);
      const double x = width / 2.0, y = height / 2.0;
      return {c, s, c * -x + s * -y + x, -s, c, -s * -x + c * -y + y};
    }
  }
}

// Noise beside flat black and white; few values, so that most neighbours are equal; and one color.
std::vector<uint32_t> some_picture(size_t i, uint32_t width, uint32_t height) {
  std::vector<uint32_t> picture = test::noise_picture(i, width, height);
  for (uint32_t& pixel : picture) {
    if (i % 4 == 2) pixel = 0xff000000 | ((pixel & 0x00c0e0f0) + 0x00081402);
    if (i % 16 == 15) pixel = 0xff102040;
  }
  return picture;
}

TEST_CASE("tables and colors of pictures equal the plain loops") {
  std::mt19937_64 engine(3);
  for (const auto& [width, height] :
       {std::pair<uint32_t, uint32_t>{1, 1}, {2, 3}, {1, 7}, {17, 16}, {31, 37}, {64, 5}, {97, 101}}) {
    std::vector<PictureOperation> operations;
    for (int repeat = 0; repeat < (width > 50 ? 1 : 3); ++repeat) {
      for (const Kind kind : {Kind::brightness, Kind::contrast, Kind::color, Kind::sharpness}) {
        for (const double factor : {0.0, 0.1, 1.0, round_number(engine, 0, 2), any_number(engine, 0, 2)})
          operations.push_back({.kind = kind, .factor = factor});
      }
      for (const uint32_t bits : {0u, 1u, 4u, 8u})
        operations.push_back({.kind = Kind::posterize, .number = bits});
      for (const uint32_t start : {0u, 1u, 128u, 256u})
        operations.push_back({.kind = Kind::solarize, .number = start});
      for (const uint32_t more : {0u, 99u, 255u})
        operations.push_back({.kind = Kind::solarize_add, .number = more});
      for (const uint32_t turn : {0u, 1u, 51u, 255u})
        operations.push_back({.kind = Kind::hue, .number = turn});
      for (int i = 0; i < 5; ++i) operations.push_back({.kind = Kind::autocontrast});
      for (int i = 0; i < 5; ++i) operations.push_back({.kind = Kind::equalize});
      operations.push_back({.kind = Kind::invert});
      operations.push_back({});
    }
    check(batch_of(width, height, operations, 1, 3, [&](size_t i) { return some_picture(i, width, height); }),
          1, 3);
  }
}

TEST_CASE("a stretched contrast has the doubles of every two ends") {
  // Pictures of bytes from `low` to `high` in all three channels, which differ.
  constexpr uint32_t side = 16;
  std::vector<PictureOperation> operations(256, {.kind = Kind::autocontrast});
  std::mt19937_64 engine(5);
  const auto picture = [&](size_t i) {
    std::vector<uint32_t> pixels(side * side, 0xff000000);
    for (uint32_t c = 0; c < 3; ++c) {
      const auto spread = static_cast<uint32_t>((i + 85 * c) % 256);
      const auto low = static_cast<uint32_t>(engine() % (256 - spread));
      for (uint32_t k = 0; k < pixels.size(); ++k) pixels[k] |= (low + std::min(k, spread)) << (8 * c);
    }
    return pixels;
  };
  check(batch_of(side, side, operations, 0, 1, picture), 0, 1, {.interpolates = false, .turns_hues = false});
}

TEST_CASE("every color's hue is turned as the plain loops turn it") {
  // All differences of two channels, at several heights: what the hue is made of.
  constexpr uint32_t side = 256;
  std::vector<PictureOperation> operations;
  for (uint32_t i = 0; i < 12; ++i) operations.push_back({.kind = Kind::hue, .number = i * 23 % 256});
  const auto picture = [&](size_t i) {
    std::vector<uint32_t> pixels;
    for (uint32_t y = 0; y < side; ++y) {
      for (uint32_t x = 0; x < side; ++x) {
        const uint32_t most = i < 6 ? 255 : 255 - static_cast<uint32_t>(i) * 7;
        const uint32_t a = std::min(x, most), b = std::min(y, most);
        const uint32_t rgb[6][3] = {{most, a, b}, {a, most, b}, {a, b, most},
                                    {most, b, a}, {b, most, a}, {b, a, most}};
        const auto& c = rgb[i % 6];
        pixels.push_back(0xff000000 | c[0] | c[1] << 8 | c[2] << 16);
      }
    }
    return pixels;
  };
  check(batch_of(side, side, operations, 0, 1, picture), 0, 1);
}

TEST_CASE("moved pictures equal the plain loops, wherever doubles round") {
  std::mt19937_64 engine(7);
  for (const auto& [width, height] :
       {std::pair<uint32_t, uint32_t>{1, 1}, {2, 1}, {3, 5}, {29, 31}, {96, 67}, {224, 224}}) {
    std::vector<PictureOperation> operations;
    for (size_t i = 0; i < 48; ++i) {
      const Kind kind = std::array{Kind::nearest, Kind::bilinear, Kind::bicubic}[i % 3];
      operations.push_back({.kind = kind,
                            .matrix = some_matrix(engine, i / 3, width, height),
                            .fill = 0xff000000 | static_cast<uint32_t>(i * 0x030507)});
    }
    // What is nothing, and what takes everything away.
    operations.push_back({.kind = Kind::bicubic, .matrix = {1, 0, 0, 0, 1, 0}});
    operations.push_back({.kind = Kind::bilinear, .matrix = {1, 0, 5000, 0, 1, 0}, .fill = 0xff123456});
    check(batch_of(width, height, operations, 0, 2, [&](size_t i) { return some_picture(i, width, height); }),
          0, 2, {.turns_hues = false});
  }
}

TEST_CASE("a picture is not moved by more than there are numbers for") {
  std::vector<uint32_t> own(VITRINE_OPERATION_WORDS);
  const PictureOperation far{.kind = Kind::bilinear, .matrix = {1, 0, 32768, 0, 1, 0}};
  CHECK_THROWS_AS(write_operation(far, 1, 1, own), Error);
}

TEST_CASE("picture operations name what does not fit") {
  Graph graph;
  const ValueId pixels = graph.input("pixels", {2, 5, 7}, DType::u32);
  const ValueId operations = graph.input("operations", {2, 3, VITRINE_OPERATION_WORDS}, DType::u32);
  const ValueId tables = operation_tables(graph, "t", pixels, operations, 2);
  CHECK_NOTHROW(apply_operation(graph, "a", pixels, operations, tables, {.operation = 2}));
  CHECK_THROWS_AS(operation_tables(graph, "b", pixels, operations, 3), Error);
  CHECK_THROWS_AS(operation_tables(graph, "c", tables, operations, 0), Error);
  CHECK_THROWS_AS(operation_tables(graph, "d", pixels, pixels, 0), Error);
  CHECK_THROWS_AS(apply_operation(graph, "e", pixels, operations, pixels, {}), Error);
  CHECK_THROWS_AS(operation_tables(graph, "f", graph.input("x", {2, 4097, 4097}, DType::u32), operations, 0),
                  Error);
}

}  // namespace
}  // namespace vitrine
