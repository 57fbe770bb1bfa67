#include "tests/support/pictures.h"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/util/json.h"

namespace vitrine::test {
namespace {

constexpr uint32_t band_count = 16;

std::filesystem::path folder() { return std::filesystem::path(VITRINE_TEST_DATA) / "images"; }

PictureDigest digest_of(const nlohmann::json& row) {
  return {.width = row.at("width").get<uint32_t>(),
          .height = row.at("height").get<uint32_t>(),
          .bands = row.at("rgb").get<std::vector<uint32_t>>()};
}

std::vector<uint8_t> bytes_of(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// Where a band of rows begins: row y is in band 16*y/height.
uint64_t band_begin(uint32_t band, uint32_t height) {
  return (uint64_t{band} * height + band_count - 1) / band_count;
}

}  // namespace

uint32_t crc32(std::span<const uint8_t> bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> values{};
    for (uint32_t i = 0; i < 256; i++) {
      values[i] = i;
      for (int bit = 0; bit < 8; bit++) values[i] = values[i] >> 1 ^ (values[i] & 1 ? 0xedb88320 : 0);
    }
    return values;
  }();
  uint32_t value = 0xffffffff;
  for (const uint8_t byte : bytes) value = table[(value ^ byte) & 0xff] ^ value >> 8;
  return ~value;
}

std::filesystem::path Picture::path() const { return folder() / "pictures" / name; }

std::vector<Picture> pictures() {
  std::vector<Picture> list;
  const nlohmann::json manifest = read_json(folder() / "manifest.json");
  for (const nlohmann::json& row : manifest.at("pictures")) {
    Picture picture{.name = row.at("file"), .covers = row.at("covers"), .rgb = digest_of(row)};
    picture.turned = row.contains("turned") ? digest_of(row.at("turned")) : picture.rgb;
    picture.white = row.contains("white") ? digest_of(row.at("white")) : picture.rgb;
    picture.grey = row.at("grey");
    picture.bytes = bytes_of(row.value("bytes", ""));
    list.push_back(std::move(picture));
  }
  return list;
}

std::vector<Truncation> truncations() {
  std::vector<Truncation> list;
  const std::vector<Picture> all = pictures();
  const nlohmann::json manifest = read_json(folder() / "manifest.json");
  for (const nlohmann::json& row : manifest.at("truncations")) {
    const auto name = row.at("file").get<std::string>();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Picture& p) { return p.name == name; });
    REQUIRE(found != all.end());
    list.push_back({.picture = *found,
                    .lengths = row.at("lengths").get<size_t>(),
                    .whole = row.at("whole").get<std::vector<size_t>>()});
  }
  return list;
}

std::vector<uint8_t> rgb_bytes(const Image& image) {
  std::vector<uint8_t> bytes;
  bytes.reserve(image.pixels.size() / 4 * 3);
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    bytes.insert(bytes.end(), {image.pixels[i], image.pixels[i + 1], image.pixels[i + 2]});
  }
  return bytes;
}

void check_picture(const Image& image, const PictureDigest& expected) {
  REQUIRE(image.width == expected.width);
  REQUIRE(image.height == expected.height);
  REQUIRE(image.pixels.size() == image.pixel_count() * 4);
  bool opaque = true;
  for (size_t i = 3; i < image.pixels.size(); i += 4) opaque = opaque && image.pixels[i] == 255;
  CHECK(opaque);
  const std::vector<uint8_t> bytes = rgb_bytes(image);
  const std::span<const uint8_t> all(bytes);
  const uint64_t row = uint64_t{image.width} * 3;
  for (uint32_t band = 0; band < band_count; band++) {
    const uint64_t begin = band_begin(band, image.height), end = band_begin(band + 1, image.height);
    INFO("rows " << begin << " to " << end << " of " << image.height);
    CHECK(crc32(all.subspan(begin * row, (end - begin) * row)) == expected.bands.at(band));
  }
}

}  // namespace vitrine::test
