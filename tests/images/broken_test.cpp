// Pictures that somebody broke: each gives one sentence, or a picture where Pillow takes it for one.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "images/image.h"
#include "runtime/util/error.h"
#include "tests/support/corpus.h"
#include "tests/support/pictures.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

struct Answer {
  std::optional<Image> image;
  std::string sentence;
};

Answer decode(std::string_view content, const DecodeOptions& options = {}) {
  try {
    return {.image = decode_image(std::as_bytes(std::span(content)), "x.jpg", options), .sentence = {}};
  } catch (const Error& error) {
    const std::string sentence = error.what();
    if (error.code() != ErrorCode::failed || !sentence.starts_with("x.jpg: ") ||
        sentence.find('\n') != std::string::npos) {
      FAIL("not one sentence about the file: " << sentence);
    }
    return {.image = {}, .sentence = sentence};
  }
}

std::string content_of(const std::string& name) {
  for (const Picture& picture : pictures()) {
    if (picture.name == name) return read_whole_file(picture.path());
  }
  FAIL("no picture " << name);
  return {};
}

void put_big_endian(std::string& bytes, size_t offset, uint32_t value, size_t size) {
  for (size_t i = 0; i < size; i++) bytes.at(offset + i) = static_cast<char>(value >> 8 * (size - 1 - i));
}

TEST_CASE("a picture that is cut anywhere is refused just where Pillow refuses it") {
  const std::vector<Truncation> all = truncations();
  CHECK(all.size() == 3);
  for (const Truncation& cut : all) {
    const std::string content = read_whole_file(cut.picture.path());
    size_t lengths = 0;
    for (size_t length = 0; length < content.size(); length++) {
      if (length % 7 != 0 && length + 20 < content.size()) continue;
      lengths++;
      INFO(cut.picture.name << " cut to " << length << " of " << content.size() << " bytes");
      const Answer answer = decode(std::string_view(content).substr(0, length));
      const bool whole = std::find(cut.whole.begin(), cut.whole.end(), length) != cut.whole.end();
      CHECK(answer.image.has_value() == whole);
      if (answer.image) check_picture(*answer.image, cut.picture.rgb);
    }
    CHECK(lengths == cut.lengths);
  }
}

// Nothing can be said of the pixels: the libraries' releases differ in what they make of nonsense.
TEST_CASE("random changes give a sentence or a picture") {
  for (const char* name :
       {"jpeg_420.jpg", "jpeg_progressive.jpg", "jpeg_arithmetic.jpg", "jpeg_cmyk.jpg", "jpeg_exif_6.jpg",
        "png_rgb_8.png", "png_palette_4_interlaced.png", "png_animated_part.png", "webp_lossy_alpha.webp",
        "webp_lossless.webp", "webp_animated.webp"}) {
    const std::string whole = content_of(name);
    std::mt19937 random(2026);
    int pictures = 0, sentences = 0;
    for (int round = 0; round < 300; round++) {
      std::string content = whole;
      for (unsigned change = 0; change < 1 + random() % 4; change++) {
        content[random() % content.size()] = static_cast<char>(random());
      }
      if (round % 10 == 0) content.erase(random() % content.size(), random() % 40);
      INFO(name << ", round " << round);
      const Answer answer = decode(content, {.exif = true});
      (answer.image ? pictures : sentences)++;
      if (answer.image) CHECK(answer.image->pixels.size() == answer.image->pixel_count() * 4);
    }
    INFO(name << ": " << pictures << " pictures, " << sentences << " sentences");
    CHECK(sentences > 0);
  }
}

TEST_CASE("a PNG must be whole after its pixels too, as far as it goes") {
  using Catch::Matchers::ContainsSubstring;
  const std::string content = content_of("png_trailing_text.png");
  const size_t text = content.find("tEXt");
  CHECK(decode(content.substr(0, text)).image);
  CHECK_THAT(decode(content.substr(0, text + 6)).sentence,
             ContainsSubstring("ends inside its chunk \"tEXt\""));
  CHECK(decode(content.substr(0, text + 17)).image);  // all of the text, and no checksum
}

TEST_CASE("an animation's frames must be numbered") {
  using Catch::Matchers::ContainsSubstring;
  std::string content = content_of("png_animated_hidden.png");
  const size_t frame = content.rfind("fdAT");
  content.at(frame + 7) = 3;  // behind a frame header, where nothing is read any more
  CHECK(decode(content).image);
  content = content_of("png_animated_part.png");
  const size_t control = content.find("fcTL");
  content.at(control + 7) = 1;
  const auto* chunk = reinterpret_cast<const uint8_t*>(content.data()) + control;
  put_big_endian(content, control + 4 + 26, crc32({chunk, 4 + 26}), 4);
  CHECK_THAT(decode(content).sentence, ContainsSubstring("not numbered in order"));
}

// 40000 x 25000 pixels in three headers.
std::string huge(const std::string& name) {
  std::string content = content_of(name);
  if (name.starts_with("jpeg")) {
    const size_t frame = content.find("\xff\xc0");
    put_big_endian(content, frame + 5, 25000, 2);
    put_big_endian(content, frame + 7, 40000, 2);
  } else if (name.starts_with("png")) {
    put_big_endian(content, 16, 40000, 4);
    put_big_endian(content, 20, 25000, 4);
    const auto* header = reinterpret_cast<const uint8_t*>(content.data()) + 12;
    put_big_endian(content, 29, crc32({header, 17}), 4);
  } else {
    for (size_t i = 0; i < 3; i++) {
      content.at(24 + i) = static_cast<char>((40000 - 1) >> 8 * i);
      content.at(27 + i) = static_cast<char>((25000 - 1) >> 8 * i);
    }
  }
  return content;
}

TEST_CASE("a header that claims a thousand million pixels is refused before memory is taken") {
  const TemporaryFolder folder;
  for (const char* name : {"jpeg_420.jpg", "png_rgb_8.png", "webp_animated.webp"}) {
    const std::filesystem::path path = folder.file(name, huge(name));
    INFO(name);
    const Outcome outcome = run_apart([&] { decode_image(path); });
    CHECK(outcome.code == ErrorCode::failed);
    CHECK(outcome.message ==
          path.string() + ": the picture has 40000x25000 pixels, expected at most 178956970 in all");
    // The limit counts what this process had before.
    CHECK(outcome.peak_bytes < size_t{512} << 20);
  }
}

TEST_CASE("the number of pixels may be limited further") {
  using Catch::Matchers::ContainsSubstring;
  for (const char* name : {"jpeg_420.jpg", "png_rgb_8.png", "webp_lossy.webp"}) {
    const std::string content = content_of(name);
    const Answer whole = decode(content);
    REQUIRE(whole.image);
    CHECK(decode(content, {.max_pixels = whole.image->pixel_count()}).image);
    CHECK_THAT(decode(content, {.max_pixels = whole.image->pixel_count() - 1}).sentence,
               ContainsSubstring(std::to_string(whole.image->pixel_count() - 1)));
  }
}

// Each scan takes as long as a whole picture, and costs its author ten bytes.
TEST_CASE("a progressive JPEG with hundreds of scans is refused") {
  using Catch::Matchers::ContainsSubstring;
  std::string content = content_of("jpeg_progressive_grey.jpg");
  const size_t last = content.rfind("\xff\xda"), end = content.rfind("\xff\xd9");
  REQUIRE(last < end);
  const std::string scan = content.substr(last, end - last);
  std::string scans;
  for (int i = 0; i < 600; i++) scans += scan;
  CHECK(decode(content).image);
  content.insert(end, scans);
  CHECK_THAT(decode(content).sentence, ContainsSubstring("more than 500 scans"));
}

}  // namespace
}  // namespace vitrine::test
