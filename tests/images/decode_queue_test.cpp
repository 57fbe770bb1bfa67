#include "images/decode_queue.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/util/system.h"
#include "tests/support/pictures.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

std::vector<Picture> small_pictures() {
  std::vector<Picture> small;
  for (Picture& picture : pictures()) {
    if (picture.rgb.width * uint64_t{picture.rgb.height} < 20'000) small.push_back(std::move(picture));
  }
  return small;
}

TEST_CASE("a queue gives every picture, in order, whatever its bounds") {
  const TemporaryFolder folder;
  const std::vector<Picture> all = small_pictures();
  std::vector<std::filesystem::path> files{folder.file("text.jpg", "hello"), folder / "missing.png"};
  for (const Picture& picture : all) files.push_back(picture.path());
  system::FileStatus none;
  const std::error_code missing = system::status_of(files[1], none);  // in this system's words
  REQUIRE(missing == std::errc::no_such_file_or_directory);
  for (const DecodeQueueOptions& options : {
           DecodeQueueOptions{},
           DecodeQueueOptions{.threads = 1},
           DecodeQueueOptions{.threads = 5},
           DecodeQueueOptions{.threads = 3, .pictures_ahead = 1},
           DecodeQueueOptions{.threads = 4, .pictures_ahead = 7, .bytes_ahead = 0},
           DecodeQueueOptions{.threads = 200, .pictures_ahead = 0, .bytes_ahead = 20'000},
       }) {
    INFO(options.threads << " threads, " << options.pictures_ahead << " pictures and " << options.bytes_ahead
                         << " bytes ahead");
    DecodeQueue queue(encoded_in(files), options);
    CHECK(queue.size() == files.size());
    for (size_t i = 0; i < files.size(); i++) {
      const std::optional<DecodedPicture> picture = queue.next();
      REQUIRE(picture);
      INFO(files[i]);
      CHECK(picture->index == i);
      CHECK(picture->path == files[i]);
      CHECK(picture->image.has_value() == picture->error.empty());
      REQUIRE(picture->image.has_value() == (i >= 2));
      if (picture->image) check_picture(*picture->image, all[i - 2].rgb);
      if (i == 0) CHECK_THAT(picture->error, Catch::Matchers::ContainsSubstring("starts with \"hello\""));
      if (i == 1) CHECK_THAT(picture->error, Catch::Matchers::EndsWith(": " + missing.message()));
    }
    CHECK_FALSE(queue.next());
    CHECK_FALSE(queue.try_next());
  }
}

TEST_CASE("a queue of nothing ends at once") {
  DecodeQueue queue({});
  CHECK(queue.size() == 0);
  CHECK_FALSE(queue.next());
}

TEST_CASE("a queue's options reach the decoder") {
  for (const Picture& picture : pictures()) {
    if (picture.name != "jpeg_exif_6.jpg") continue;
    DecodeQueue turned(encoded_in({picture.path()}), {.decode = {.exif = true}});
    const std::optional<DecodedPicture> item = turned.next();
    REQUIRE(item);
    REQUIRE(item->image);
    check_picture(*item->image, picture.turned);
    DecodeQueue limited(encoded_in({picture.path()}), {.decode = {.max_pixels = 10}});
    CHECK_THAT(limited.next()->error, Catch::Matchers::ContainsSubstring("expected at most 10"));
  }
}

TEST_CASE("a queue decodes bytes as it does files, in the order of the list") {
  std::vector<EncodedPicture> mixed;
  std::vector<std::string> contents;
  for (const Picture& picture : small_pictures()) contents.push_back(read_whole_file(picture.path()));
  contents.push_back("hello");
  contents.push_back("");
  for (size_t i = 0; i < contents.size(); ++i) {
    mixed.push_back(
        {.path = "archive.tar/" + std::to_string(i), .bytes = std::as_bytes(std::span(contents[i]))});
    if (i < small_pictures().size()) mixed.push_back({.path = small_pictures()[i].path(), .bytes = {}});
  }
  DecodeQueue queue(mixed, {.threads = 3});
  for (const Picture& picture : small_pictures()) {
    for (int twice = 0; twice < 2; ++twice) {
      const std::optional<DecodedPicture> item = queue.next();
      REQUIRE(item);
      REQUIRE(item->image);
      check_picture(*item->image, picture.rgb);
    }
  }
  for (const auto* start : {"starts with \"hello\"", "empty"}) {
    const std::optional<DecodedPicture> item = queue.next();
    REQUIRE(item);
    CHECK_FALSE(item->image);
    CHECK_THAT(item->error,
               Catch::Matchers::StartsWith("archive.tar/") && Catch::Matchers::ContainsSubstring(start));
  }
  CHECK_FALSE(queue.next());
}

TEST_CASE("a queue may be left early") {
  std::vector<std::filesystem::path> files;
  for (int round = 0; round < 5; round++) {
    for (const Picture& picture : small_pictures()) files.push_back(picture.path());
  }
  for (size_t taken = 0; taken < 12; taken++) {
    DecodeQueue queue(encoded_in(files),
                      {.threads = 4, .pictures_ahead = 1 + taken * 3, .bytes_ahead = taken * 4000});
    for (size_t i = 0; i < taken; i++) CHECK(queue.next()->index == i);
  }
}

// A picture that nobody was to begin yet can still come into being.
TEST_CASE("a queue does not run further ahead than it may") {
  const TemporaryFolder folder;
  const std::string content = read_whole_file(small_pictures().front().path());
  const uint64_t bytes =
      small_pictures().front().rgb.width * uint64_t{small_pictures().front().rgb.height} * 4;
  for (const DecodeQueueOptions& options :
       {DecodeQueueOptions{.threads = 4, .pictures_ahead = 3},
        // One thread has read the second picture when it finds that there is no room.
        DecodeQueueOptions{.threads = 1, .bytes_ahead = bytes}}) {
    std::vector<std::filesystem::path> files;
    for (int i = 0; i < 8; i++) {
      files.push_back(i < 4 ? folder.file("early" + std::to_string(i), content)
                            : folder / ("late" + std::to_string(i)));
    }
    for (size_t i = 4; i < files.size(); i++) std::filesystem::remove(files[i]);
    DecodeQueue queue(encoded_in(files), options);
    CHECK(queue.next()->image);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // time to go too far, if it would
    for (size_t i = 4; i < files.size(); i++) folder.file(files[i].filename().string(), content);
    for (size_t i = 1; i < files.size(); i++) {
      const std::optional<DecodedPicture> picture = queue.next();
      REQUIRE(picture);
      INFO(picture->error);
      CHECK(picture->image);
    }
  }
}

}  // namespace
}  // namespace vitrine::test
