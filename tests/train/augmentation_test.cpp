#include "train/data/augmentation.h"

#include <array>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <numeric>

#include "runtime/util/error.h"
#include "tests/train/sample_files.h"

namespace vitrine::test {

TEST_CASE("a placement moves, mirrors and fills with black, at every offset") {
  for (const SampleShape shape : {SampleShape{1, 1, 1}, SampleShape{2, 3, 5}, SampleShape{3, 4, 2}}) {
    std::vector<uint8_t> sample(shape.bytes());
    for (size_t i = 0; i < sample.size(); ++i) sample[i] = static_cast<uint8_t>(i + 1);
    for (int32_t down = -7; down <= 7; ++down) {
      for (int32_t right = -7; right <= 7; ++right) {
        for (const bool mirrored : {false, true}) {
          std::vector<uint8_t> expected, found(shape.bytes(), 77);
          for (int32_t c = 0; c < static_cast<int32_t>(shape.channels); ++c) {
            for (int32_t y = 0; y < static_cast<int32_t>(shape.height); ++y) {
              for (int32_t x = 0; x < static_cast<int32_t>(shape.width); ++x) {
                const auto height = static_cast<int32_t>(shape.height),
                           width = static_cast<int32_t>(shape.width);
                const int32_t from_y = y + down, from_x = (mirrored ? width - 1 - x : x) + right;
                const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
                expected.push_back(
                    inside ? sample[static_cast<size_t>((c * height + from_y) * width + from_x)] : 0);
              }
            }
          }
          place(sample, shape, {down, right, mirrored}, found);
          CAPTURE(shape.to_string(), down, right, mirrored);
          CHECK(found == expected);
        }
      }
    }
  }
}

TEST_CASE("placements depend on seed, epoch and sample alone, and cover all there are evenly") {
  CHECK(draw_placement({}, 1, 2, 3) == CropPlacement{});
  const Augmentation augmentation{.crop_padding = 2, .flip = true};
  CHECK(draw_placement(augmentation, 1, 2, 3) == draw_placement(augmentation, 1, 2, 3));
  // Off means off: the crop is the same with and without mirroring.
  const CropPlacement both = draw_placement(augmentation, 1, 2, 3);
  CHECK(draw_placement({.crop_padding = 2}, 1, 2, 3) == CropPlacement{both.down, both.right, false});

  std::map<std::array<int, 3>, int> counts;
  constexpr uint32_t samples = 50000;
  for (uint32_t i = 0; i < samples; ++i) {
    const CropPlacement p = draw_placement(augmentation, 9, i % 5, i / 5);
    ++counts[{p.down, p.right, p.mirrored ? 1 : 0}];
  }
  CHECK(counts.size() == 50);
  double chi_squared = 0;
  for (const auto& [placement, count] : counts) {
    CHECK((std::abs(placement[0]) <= 2 && std::abs(placement[1]) <= 2));
    chi_squared += (count - 1000.0) * (count - 1000.0) / 1000.0;
  }
  CHECK(chi_squared < 85.4);  // 49 degrees of freedom, exceeded by chance once in a thousand
}

TEST_CASE("bytes become normalized numbers as PyTorch computes them") {
  const std::vector<float> values = cover_and_crop(1, 1, {0.5, 0.25}, {0.5, 0.125}).values(2);
  REQUIRE(values.size() == 512);
  for (size_t byte = 0; byte < 256; ++byte) {
    const float unit = static_cast<float>(byte) / 255.0f;
    CHECK(values[byte] == (unit - 0.5f) / 0.5f);
    CHECK(values[256 + byte] == (unit - 0.25f) / 0.125f);
  }
  CHECK(cover_and_crop(1, 1, {0.1307}, {0.3081}).values(3).size() == 768);  // one number for all channels
  CHECK_THROWS_AS(cover_and_crop(1, 1, {0.1, 0.2}, {0.3, 0.4}).values(3), Error);
}

TEST_CASE("the statistics of a data set are those of its bytes") {
  const TemporaryFolder folder;
  for (int i = 1; i <= 5; ++i)
    folder.file("data_batch_" + std::to_string(i) + ".bin",
                cifar_records(2, 2 * static_cast<uint32_t>(i) - 2));
  const ChannelStatistics statistics = channel_statistics(*open_dataset(folder.path(), Split::train));
  REQUIRE(statistics.mean.size() == 3);
  for (size_t c = 0; c < 3; ++c) {
    std::vector<double> units;
    for (uint64_t i = 0; i < 10; ++i) {
      for (uint64_t p = c * 1024; p < c * 1024 + 1024; ++p) units.push_back(pattern(i, p) / 255.0);
    }
    const double mean = std::accumulate(units.begin(), units.end(), 0.0) / static_cast<double>(units.size());
    double variance = 0;
    for (const double unit : units)
      variance += (unit - mean) * (unit - mean) / static_cast<double>(units.size());
    CHECK(statistics.mean[c] == Catch::Approx(mean).epsilon(1e-12));
    CHECK(statistics.std[c] * statistics.std[c] == Catch::Approx(variance).epsilon(1e-10));
  }
}

}  // namespace vitrine::test
