// A rectangle of a picture is what the whole picture has there, however little of the file was decoded for
// it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "images/image.h"
#include "runtime/util/error.h"
#include "tests/support/pictures.h"

namespace vitrine::test {
namespace {

bool holds(const ImagePart& part, const ImageArea& area) {
  return area.top >= part.top && area.left >= part.left &&
         area.top + area.height <= part.top + part.image.height &&
         area.left + area.width <= part.left + part.image.width;
}

bool has_bytes_of(const Image& whole, const ImagePart& part, const ImageArea& area) {
  for (uint32_t y = area.top; y < area.top + area.height; ++y) {
    const size_t from = (size_t{y} * whole.width + area.left) * 4;
    const size_t there = (size_t{y - part.top} * part.image.width + (area.left - part.left)) * 4;
    if (std::memcmp(whole.pixels.data() + from, part.image.pixels.data() + there, size_t{4} * area.width) !=
        0)
      return false;
  }
  return true;
}

// Any rectangle, corners and single pixels more often than chance has them.
ImageArea drawn(std::mt19937& random, uint32_t height, uint32_t width) {
  const auto side = [&](uint32_t of) {
    const uint32_t length = random() % 4 == 0 ? 1 : 1 + static_cast<uint32_t>(random() % of);
    const uint32_t spare = of - length;
    const uint32_t place = random() % 4 == 0 ? spare : static_cast<uint32_t>(random() % (spare + 1));
    return std::pair{place, length};
  };
  const auto [top, tall] = side(height);
  const auto [left, wide] = side(width);
  return {.top = top, .left = left, .height = tall, .width = wide};
}

ImagePart decode(const std::vector<std::byte>& file, const ImageArea& area,
                 const DecodeOptions& options = {}) {
  int asked = 0;
  ImagePart part = decode_part(file, "x.jpg", options, [&](uint32_t, uint32_t) {
    ++asked;
    return area;
  });
  CHECK(asked == 1);
  return part;
}

TEST_CASE("a part of a picture has the bytes of the whole") {
  std::mt19937 random(1);
  size_t smaller = 0;
  for (const Picture& picture : pictures()) {
    INFO(picture.name << " (" << picture.covers << ")");
    const std::vector<std::byte> file = read_picture_file(picture.path());
    for (const bool exif : {false, true}) {
      const Image whole = decode_image(file, picture.name, {.exif = exif});
      const int rounds = whole.pixel_count() > 1'000'000 ? 3 : 40;
      for (int round = 0; round < rounds; ++round) {
        const ImageArea area = drawn(random, whole.height, whole.width);
        const ImagePart part = decode(file, area, {.exif = exif});
        INFO("rows " << area.top << " + " << area.height << ", columns " << area.left << " + " << area.width);
        REQUIRE(holds(part, area));
        REQUIRE(has_bytes_of(whole, part, area));
        smaller += part.image.pixel_count() < whole.pixel_count() ? 1 : 0;
      }
    }
  }
  CHECK(smaller > 500);
}

std::vector<std::byte> file_named(const std::string& name) {
  for (const Picture& picture : pictures()) {
    if (picture.name == name) return read_picture_file(picture.path());
  }
  FAIL("no picture " << name);
  return {};
}

TEST_CASE("of a JPEG little more is decoded than the part") {
  const ImagePart part = decode(file_named("jpeg_403x301.jpg"), {100, 200, 50, 40});
  CHECK(part.image.height < 50 + 2 * 16 + 16);
  CHECK(part.image.width < 40 + 4 * 16);
  CHECK(part.top > 60);
  CHECK(part.left > 160);
}

TEST_CASE("a part of a JPEG that is cut is refused as the whole is") {
  std::vector<std::byte> file = file_named("jpeg_403x301.jpg");
  file.resize(file.size() / 2);
  std::string said;
  try {
    decode_image(file, "x.jpg");
  } catch (const Error& error) {
    said = error.what();
  }
  REQUIRE_FALSE(said.empty());
  CHECK_THROWS_WITH(decode_part(file, "x.jpg", {}, [](uint32_t, uint32_t) { return ImageArea{0, 0, 1, 1}; }),
                    Catch::Matchers::Equals(said));
}

TEST_CASE("of a damaged JPEG a part is what the whole has, or both are refused") {
  std::mt19937 random(2);
  const std::vector<std::byte> good = file_named("jpeg_420.jpg");
  int refused = 0, decoded = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<std::byte> file = good;
    // Not the last bytes: they say that the file is whole.
    for (int hits = 0; hits < 1 + round % 3; ++hits)
      file[2 + random() % (file.size() - 4)] = static_cast<std::byte>(random() & 255);
    std::optional<Image> whole;
    try {
      whole = decode_image(file, "x.jpg");
    } catch (const Error&) {
    }
    ImageArea area;
    std::optional<ImagePart> part;
    try {
      part = decode_part(file, "x.jpg", {}, [&](uint32_t height, uint32_t width) {
        return area = drawn(random, height, width);
      });
    } catch (const Error&) {
    }
    // What is broken below the part alone isn't seen.
    if (whole) {
      REQUIRE(part);
      REQUIRE(holds(*part, area));
      REQUIRE(has_bytes_of(*whole, *part, area));
    }
    (part ? decoded : refused) += 1;
  }
  CHECK(refused > 0);
  CHECK(decoded > 100);
}

}  // namespace
}  // namespace vitrine::test
