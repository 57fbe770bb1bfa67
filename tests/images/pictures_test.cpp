// Every picture of tests/images/pictures against what Pillow made of it (make.py).
#include "tests/support/pictures.h"

#include <catch2/catch_test_macros.hpp>
#include <utility>
#include <vector>

#include "images/exif.h"
#include "images/image.h"

namespace vitrine::test {
namespace {

TEST_CASE("every picture has the bytes that Pillow gives") {
  const std::vector<Picture> all = pictures();
  CHECK(all.size() >= 100);
  for (const Picture& picture : all) {
    INFO(picture.name << " (" << picture.covers << ")");
    const Image image = decode_image(picture.path());
    if (!picture.bytes.empty()) CHECK(rgb_bytes(image) == picture.bytes);
    check_picture(image, picture.rgb);
    CHECK(crc32(grey_from_rgb(image)) == picture.grey);
  }
}

TEST_CASE("EXIF turns a picture on request only") {
  int turned = 0;
  for (const Picture& picture : pictures()) {
    if (picture.rgb.width * uint64_t{picture.rgb.height} > 100'000) continue;
    INFO(picture.name << " (" << picture.covers << ")");
    check_picture(decode_image(picture.path(), {.exif = true}), picture.turned);
    turned += picture.turned.bands != picture.rgb.bands ? 1 : 0;
  }
  CHECK(turned == 10);  // seven ways in a JPEG, two places in a PNG, and a WebP
}

TEST_CASE("a PNG's one transparent color is white on request only") {
  int changed = 0;
  for (const Picture& picture : pictures()) {
    if (picture.rgb.width * uint64_t{picture.rgb.height} > 100'000) continue;
    INFO(picture.name << " (" << picture.covers << ")");
    check_picture(decode_image(picture.path(), {.white = true}), picture.white);
    changed += picture.white.bands != picture.rgb.bands ? 1 : 0;
  }
  CHECK(changed == 7);  // in palettes, greys and RGB
}

TEST_CASE("a picture as it is stored comes with the way to turn it") {
  int seen = 0;
  for (const Picture& picture : pictures()) {
    if (picture.rgb.width * uint64_t{picture.rgb.height} > 100'000) continue;
    INFO(picture.name << " (" << picture.covers << ")");
    for (const bool exif : {false, true}) {
      Decoded stored = decode_stored(picture.path(), {.exif = exif});
      check_picture(stored.image, picture.rgb);
      CHECK((stored.orientation == 1) == (picture.turned.bands == picture.rgb.bands));
      seen |= 1 << stored.orientation;
      check_picture(turned(std::move(stored.image), stored.orientation), picture.turned);
    }
  }
  CHECK(seen == 0b111111110);
}

}  // namespace
}  // namespace vitrine::test
