// Weights and loops against hashes of what Pillow itself made (tests/parity/make_resize_fixture.py).
#include "model/pictures/pillow_filter.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/pictures/host_resample.h"
#include "model/pictures/picture_input.h"
#include "runtime/ops/pictures/reference_resample.h"
#include "runtime/util/json.h"
#include "tests/support/noise_picture.h"

namespace vitrine {
namespace {

// The part of a picture that both directions' taps need.
std::vector<uint32_t> needed_part(std::span<const uint32_t> pixels, uint32_t width, const PillowTaps& columns,
                                  const PillowTaps& rows) {
  std::vector<uint32_t> part;
  for (uint32_t y = rows.source_begin; y < rows.source_end; ++y) {
    for (uint32_t x = columns.source_begin; x < columns.source_end; ++x)
      part.push_back(pixels[uint64_t{y} * width + x]);
  }
  return part;
}

struct Window {
  int64_t left = 0, top = 0;
  uint32_t width = 0, height = 0;
};

std::vector<uint32_t> resize(Filter filter, uint64_t seed, uint32_t width, uint32_t height, uint32_t to_width,
                             uint32_t to_height, Window window) {
  const PillowTaps columns = pillow_taps(filter, width, to_width, window.left, window.width);
  const PillowTaps rows = pillow_taps(filter, height, to_height, window.top, window.height);
  const std::vector<uint32_t> source =
      needed_part(test::noise_picture(seed, width, height), width, columns, rows);
  const ResamplePicture picture{.width = columns.source_end - columns.source_begin,
                                .height = rows.source_end - rows.source_begin,
                                .columns = columns.taps,
                                .rows = rows.taps};
  const std::vector<ResamplePicture> pictures{picture};
  const std::vector<uint32_t> result = reference::resample_columns(
      pictures, reference::resample_rows(pictures, source, resample_needs(picture).blocks));
  // What is resized on the host, with wide registers and without.
  const PreparedPicture prepared{.top = rows.source_begin, .left = columns.source_begin, .resample = picture};
  const Picture whole = picture_of(test::noise_picture(seed, width, height), width);
  std::vector<uint32_t> on_host{1, 2, 3};
  for (const bool plain : {false, true}) {
    resample_on_host(whole.pixels, width, prepared, on_host, plain);
    CHECK(on_host == result);
  }
  return result;
}

nlohmann::json cases() {
  return read_json(std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "preprocessing" / "resize.json");
}

TEST_CASE("Pillow's filters give Pillow's pictures, byte for byte") {
  const nlohmann::json file = cases();
  CHECK(file.at("cases").size() >= 100);
  for (const auto& entry : file.at("cases")) {
    INFO(entry.dump());
    const auto filter = filter_named(entry.at("filter").get<std::string>());
    REQUIRE(filter);
    const uint32_t to_width = entry.at("to")[0], to_height = entry.at("to")[1];
    const std::vector<uint32_t> result =
        resize(*filter, entry.at("seed"), entry.at("from")[0], entry.at("from")[1], to_width, to_height,
               {0, 0, to_width, to_height});
    const std::vector<uint8_t> bytes = test::rgb_of(result);
    CHECK(test::fnv(std::as_bytes(std::span(bytes))) == entry.at("fnv").get<std::string>());
  }
}

TEST_CASE("a window of a resize is that part of the whole, with the fill around it") {
  for (const Filter filter : {Filter::nearest, Filter::bilinear, Filter::bicubic}) {
    for (const Window window : {Window{5, 3, 20, 11}, Window{-4, -2, 50, 30}, Window{30, -1, 10, 9}}) {
      const uint32_t to_width = 37, to_height = 23;
      const auto whole = resize(filter, 1, 83, 61, to_width, to_height, {0, 0, to_width, to_height});
      const auto part = resize(filter, 1, 83, 61, to_width, to_height, window);
      size_t wrong = 0;
      for (int64_t y = 0; y < window.height; ++y) {
        for (int64_t x = 0; x < window.width; ++x) {
          const int64_t from_x = x + window.left, from_y = y + window.top;
          const bool inside = from_x >= 0 && from_x < to_width && from_y >= 0 && from_y < to_height;
          const uint32_t expected =
              inside ? whole[static_cast<size_t>(from_y * to_width + from_x)] : 0xff000000u;
          wrong += part[static_cast<size_t>(y * window.width + x)] != expected;
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a window needs only its own part of the source") {
  const PillowTaps taps = pillow_taps(Filter::bicubic, 1000, 250, 100, 50);
  CHECK(taps.source_begin == 394);
  CHECK(taps.source_end == 606);
  CHECK(taps.taps.lines.front().first == 0);
  const PillowTaps copied = pillow_taps(Filter::bicubic, 1000, 1000, 300, 100);
  CHECK(copied.source_begin == 300);
  CHECK(copied.source_end == 400);
  CHECK(copied.taps.weights.size() == 100);
}

TEST_CASE("filters have Pillow's names and numbers") {
  for (const Filter filter :
       {Filter::nearest, Filter::box, Filter::bilinear, Filter::hamming, Filter::bicubic, Filter::lanczos})
    CHECK(filter_named(name_of(filter)) == filter);
  CHECK(filter_numbered(2) == Filter::bilinear);
  CHECK(filter_numbered(3) == Filter::bicubic);
  CHECK_FALSE(filter_numbered(6));
  CHECK_FALSE(filter_named("cubic"));
}

}  // namespace
}  // namespace vitrine
