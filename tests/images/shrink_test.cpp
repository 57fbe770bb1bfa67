#include "images/shrink.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "images/decoders.h"

namespace vitrine {
namespace {

Image noise(uint32_t width, uint32_t height) {
  Image image = empty_image(width, height);
  std::minstd_rand random(width * 31 + height);
  for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(random());
  for (size_t i = 3; i < image.pixels.size(); i += 4) image.pixels[i] = 255;
  return image;
}

// The mean over [x0, x1) x [y0, y1) in doubles, pixel by pixel over the whole picture.
double mean(const Image& image, double x0, double x1, double y0, double y1, size_t channel) {
  double sum = 0;
  for (uint32_t y = 0; y < image.height; ++y) {
    for (uint32_t x = 0; x < image.width; ++x) {
      const double w = std::max(0.0, std::min(x + 1.0, x1) - std::max<double>(x, x0));
      const double h = std::max(0.0, std::min(y + 1.0, y1) - std::max<double>(y, y0));
      sum += w * h * image.pixels[4 * (size_t{y} * image.width + x) + channel];
    }
  }
  return sum / ((x1 - x0) * (y1 - y0));
}

}  // namespace

TEST_CASE("a shrunk picture's pixels are the means of the areas that they cover") {
  for (const auto& [width, height, side] : {std::array<uint32_t, 3>{53, 31, 17},
                                            {31, 53, 7},
                                            {64, 32, 16},
                                            {101, 1, 13},
                                            {5, 97, 96},
                                            {640, 3, 128}}) {
    INFO(width << "x" << height << " to " << side);
    const Image image = noise(width, height);
    const Image small = shrunk(image, side);
    REQUIRE(std::max(small.width, small.height) == side);
    const double proportion = double(height) / width;
    CHECK(std::abs(small.height - std::max(1.0, small.width * proportion)) <= 0.5 + proportion * 0.5);
    double worst = 0;
    for (uint32_t y = 0; y < small.height; ++y) {
      for (uint32_t x = 0; x < small.width; ++x) {
        for (size_t c = 0; c < 4; ++c) {
          const double expected =
              mean(image, double(x) * width / small.width, double(x + 1) * width / small.width,
                   double(y) * height / small.height, double(y + 1) * height / small.height, c);
          const double found = small.pixels[4 * (size_t{y} * small.width + x) + c];
          worst = std::max(worst, std::abs(found - expected));
        }
      }
    }
    CHECK(worst <= 0.5 + 1e-9);
  }
}

TEST_CASE("a picture that isn't larger stays as it is") {
  const Image image = noise(19, 7);
  CHECK(shrunk(image, 19).pixels == image.pixels);
  CHECK(shrunk(image, 20).width == 19);
}

}  // namespace vitrine
