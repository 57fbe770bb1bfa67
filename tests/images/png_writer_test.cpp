#include "images/png_writer.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "images/image.h"
#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

std::vector<uint8_t> noise(size_t count) {
  std::vector<uint8_t> bytes(count);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST_CASE("a written PNG is read as it was") {
  const TemporaryFolder folder;
  for (const uint32_t channels : {1u, 3u, 4u}) {
    for (const auto& [width, height] : {std::pair{1u, 1u}, {7u, 5u}, {301u, 97u}}) {
      INFO(width << "x" << height << ", " << channels << " channels");
      const std::vector<uint8_t> bytes = noise(size_t{width} * height * channels);
      write_png(folder / "x.png", width, height, channels, bytes);
      const Image image = decode_image(folder / "x.png");
      REQUIRE(image.width == width);
      REQUIRE(image.height == height);
      bool same = true;
      for (size_t i = 0; i < image.pixel_count(); i++) {
        for (size_t c = 0; c < 3; c++) {
          same = same && image.pixels[i * 4 + c] == bytes[i * channels + (channels == 1 ? 0 : c)];
        }
      }
      CHECK(same);
    }
  }
  CHECK(folder.names() == std::vector<std::string>{"x.png"});
}

TEST_CASE("what is no picture is not written") {
  const TemporaryFolder folder;
  const auto refused = [&](uint32_t width, uint32_t height, uint32_t channels, size_t bytes) {
    try {
      write_png(folder / "x.png", width, height, channels, noise(bytes));
    } catch (const Error& error) {
      return error.code() == ErrorCode::usage;
    }
    return false;
  };
  CHECK(refused(3, 3, 3, 26));
  CHECK(refused(3, 3, 2, 18));
  CHECK(refused(0, 3, 3, 0));
  CHECK(refused(0x80000000, 2, 1, 0));
  CHECK(folder.names().empty());
}

TEST_CASE("a PNG that cannot be written leaves nothing behind") {
  const TemporaryFolder folder;
  const auto code = [](const std::filesystem::path& path) {
    try {
      write_png(path, 300, 300, 3, noise(270'000));
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(path.string()) != std::string::npos);
      return error.code();
    }
    return ErrorCode::usage;
  };
  CHECK(code(folder / "none" / "x.png") == ErrorCode::failed);
  CHECK(code(folder.path()) == ErrorCode::failed);
  CHECK(folder.names().empty());
}

}  // namespace
}  // namespace vitrine::test
