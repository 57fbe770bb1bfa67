#include "train/logs/event_file.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "tests/support/temporary_folder.h"

namespace vitrine {
namespace {

std::string text_of(std::initializer_list<int> bytes) {
  std::string text;
  for (const int byte : bytes) text += static_cast<char>(byte);
  return text;
}

// RFC 3720, B.4, and the check value of the catalogues.
TEST_CASE("crc32c gives the sums that are published") {
  const auto sum = [](const std::string& text) { return crc32c(test::to_bytes(text)); };
  CHECK(sum("") == 0);
  CHECK(sum("123456789") == 0xe3069283);
  CHECK(sum(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(sum(std::string(32, '\xff')) == 0x62a8ab43);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i), falling += static_cast<char>(31 - i);
  CHECK(sum(rising) == 0x46dd794e);
  CHECK(sum(falling) == 0x113fdb5c);
}

TEST_CASE("an event is written byte for byte as protocol buffers have it") {
  CHECK(version_event(1) == text_of({0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x1a, 13}) + "brain.Event:2");
  const Scalar loss{"loss", 0.5};
  // Step 300, and a summary of one value: its tag and 0.5f.
  CHECK(scalar_event(2, 300, {&loss, 1}) ==
        text_of({0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x10, 0xac, 0x02, 0x2a, 13, 0x0a, 11, 0x0a, 4}) + "loss" +
            text_of({0x15, 0, 0, 0, 0x3f}));
  const auto png = test::to_bytes("PNG");
  const EventPicture picture{"a", 2, 3, 1, png};
  CHECK(picture_event(2, 0, {&picture, 1}) ==
        text_of({0x09, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x10, 0, 0x2a, 18, 0x0a, 16, 0x0a, 1}) + "a" +
            text_of({0x22, 11, 0x08, 3, 0x10, 2, 0x18, 1, 0x22, 3}) + "PNG");
}

TEST_CASE("a record has its length and both checksums, masked") {
  const std::string record = event_record("123456789");
  REQUIRE(record.size() == 8 + 4 + 9 + 4);
  CHECK(record.substr(0, 8) == text_of({9, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(record.substr(12, 9) == "123456789");
  // 0xe3069283 turned right by 15 is 0x2507c60d; with 0xa282ead8 it is 0xc78ab0e5.
  CHECK(record.substr(21) == text_of({0xe5, 0xb0, 0x8a, 0xc7}));
}

}  // namespace
}  // namespace vitrine
