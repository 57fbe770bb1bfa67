// Files that are no pictures, or hardly any: one sentence each.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "images/image.h"
#include "runtime/util/error.h"
#include "tests/support/corpus.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

// What decoding says; empty if it doesn't mind.
std::string complaint(std::string_view content) {
  try {
    decode_image(std::as_bytes(std::span(content)), "x.jpg");
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    return error.what();
  }
}

TEST_CASE("what is no picture is named for what it is") {
  using Catch::Matchers::Equals;
  CHECK_THAT(complaint(""), Equals("x.jpg: the file is empty, expected a JPEG, PNG or WebP picture"));
  CHECK_THAT(
      complaint("Dear diary,\ntoday"),
      Equals("x.jpg: the file starts with \"Dear diary,\\x0a\", expected a JPEG, PNG or WebP picture"));
  CHECK_THAT(complaint("GIF89a......"),
             Equals("x.jpg: the file is a GIF file, expected a JPEG, PNG or WebP picture"));
  CHECK_THAT(complaint(std::string_view("\0\0\0\x1c"
                                        "ftypavif",
                                        12)),
             Equals("x.jpg: the file is an AVIF file, expected a JPEG, PNG or WebP picture"));
}

TEST_CASE("a signature alone is a truncated picture") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(complaint("\xff\xd8\xff"), ContainsSubstring("truncated"));
  CHECK_THAT(complaint("\x89PNG\r\n\x1a\n"), ContainsSubstring("no chunk at byte 8"));
  CHECK_THAT(complaint(std::string_view("RIFF\x10\0\0\0WEBPVP8 ", 16)), ContainsSubstring("truncated"));
}

TEST_CASE("a large file that is no picture takes no memory") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("movie.jpg", "\x1a\x45\xdf\xa3 and much more");
  grow_file(path, uint64_t{1} << 30);
  const Outcome outcome = run_apart([&] { decode_image(path); });
  CHECK_THAT(outcome.message, Catch::Matchers::ContainsSubstring("starts with"));
  CHECK(outcome.peak_bytes < size_t{512} << 20);
  grow_file(path, uint64_t{1} << 40);
  CHECK_THAT(run_apart([&] { decode_image(path); }).message,
             Catch::Matchers::ContainsSubstring("has 1099511627776 bytes, expected at most 1610612736"));
}

TEST_CASE("a missing file and a folder are told apart") {
  const TemporaryFolder folder;
  const auto refusal = [](const std::filesystem::path& path) -> std::string {
    try {
      decode_image(path);
      return "";
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::failed);
      return error.what();
    }
  };
  const std::string missing = "cannot read " + (folder / "none.jpg").string() + ": ";
  CHECK(refusal(folder / "none.jpg") == missing + no_such_file);
  CHECK(refusal(folder.path()) ==
        "cannot read " + folder.path().string() + ": it is a folder, expected a picture");
}

}  // namespace
}  // namespace vitrine::test
