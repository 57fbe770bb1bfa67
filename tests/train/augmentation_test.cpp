#include "train/data/augmentation.h"

#include <array>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "model/pictures/picture_input.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "tests/support/noise_picture.h"
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

TEST_CASE("random resized crops are torchvision's for the same numbers, and Pillow's bytes") {
  const nlohmann::json file =
      read_json(std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "preprocessing" / "crops.json");
  CHECK(file.at("cases").size() >= 72);
  size_t whole = 0;
  for (const nlohmann::json& entry : file.at("cases")) {
    INFO(entry.dump());
    const RandomResizedCrop crop{.scale_low = entry.at("scale")[0],
                                 .scale_high = entry.at("scale")[1],
                                 .ratio_low = entry.at("ratio")[0],
                                 .ratio_high = entry.at("ratio")[1],
                                 .filter = *filter_named(entry.at("filter").get<std::string>())};
    const uint32_t width = entry.at("from")[0], height = entry.at("from")[1];
    const auto numbers = entry.at("numbers").get<std::vector<double>>();
    size_t drawn = 0;
    const PictureBox box = resized_crop_box(crop, height, width, [&] { return numbers.at(drawn++); });
    const auto& expected = entry.at("box");
    CHECK(box == PictureBox{expected[0], expected[1], expected[2], expected[3]});
    whole += box == PictureBox{0, 0, height, width} ? 1 : 0;
    const uint32_t to_width = entry.at("to")[0], to_height = entry.at("to")[1];
    const PreparedPicture prepared = placed(prepare_box(box, crop.filter, to_height, to_width),
                                            {.mirrored = entry.at("mirrored").get<bool>()});
    const Picture picture = picture_of(noise_picture(entry.at("seed"), width, height), width);
    const std::vector<uint8_t> bytes = rgb_of(resized_on_host(picture, prepared));
    CHECK(fnv(std::as_bytes(std::span(bytes))) == entry.at("fnv").get<std::string>());
  }
  CHECK(whole < 20);
}

TEST_CASE("a random resized crop depends on seed, epoch and sample alone, and lies in its sample") {
  const RandomResizedCrop crop{.scale_low = 0.2, .scale_high = 0.55};
  CHECK(draw_box(crop, 301, 403, 1, 2, 3) == draw_box(crop, 301, 403, 1, 2, 3));
  std::vector<PictureBox> boxes;
  double area = 0;
  for (uint32_t sample = 0; sample < 2000; ++sample) {
    const PictureBox box = draw_box(crop, 301, 403, 1, sample % 3, sample);
    CHECK((box.height >= 1 && box.width >= 1 && box.top + box.height <= 301 && box.left + box.width <= 403));
    area += box.height * box.width / (301.0 * 403.0) / 2000;
    if (std::ranges::find(boxes, box) == boxes.end()) boxes.push_back(box);
  }
  CHECK(boxes.size() > 1990);
  // The mean of a uniform share, to five standard deviations: up to this share all proportions fit.
  CHECK(std::abs(area - 0.375) < 5 * 0.35 / std::sqrt(12.0 * 2000));
  CHECK(draw_box(crop, 301, 403, 2, 2, 3) != draw_box(crop, 301, 403, 1, 2, 3));
  CHECK(draw_box(crop, 301, 403, 1, 1, 3) != draw_box(crop, 301, 403, 1, 2, 3));
  CHECK(draw_box(crop, 1, 1, 1, 2, 3) == PictureBox{0, 0, 1, 1});
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
