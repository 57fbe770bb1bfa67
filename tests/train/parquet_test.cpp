// Tables that pyarrow has written (make_parquet.py), whole and damaged.
#include <catch2/catch_test_macros.hpp>
#include <map>

#include "tests/train/sample_files.h"
#include "train/data/parquet/codecs.h"
#include "train/data/parquet/pages.h"
#include "train/run/training_run.h"

namespace vitrine::test {
namespace {

namespace fs = std::filesystem;

const DatasetOptions options{.shape = {3, 7, 9}};

std::string table(const std::string& name) {
  return read_whole_file(fs::path(VITRINE_TEST_DATA) / "train/parquet" / (name + ".parquet"));
}

// True if sample i is the picture of this number, byte by byte.
bool shows(const Dataset& data, uint64_t i, uint64_t number) {
  const std::vector<uint8_t> pixels = pixels_of(data, i);
  const uint64_t size = data.shape().pixels();
  for (uint64_t p = 0; p < size; ++p) {
    for (uint64_t c = 0; c < 3; ++c) {
      if (pixels[c * size + p] != pattern(number, 3 * p + c)) return false;
    }
  }
  return true;
}

std::string refusal_of_table(const std::string& name) {
  const TemporaryFolder folder;
  folder.file("train.parquet", table(name));
  return refusal_of(folder, Split::train, options);
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

}  // namespace

TEST_CASE("tables of pictures are read, however they are stored") {
  constexpr uint64_t rows = 11;
  for (const std::string name : {"plain", "plain_2", "snappy", "snappy_2", "gzip", "gzip_2", "zstd", "zstd_2",
                                 "repeated", "repeated_2", "full", "binary"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    folder.file("train.parquet", table(name));
    const bool repeated = name.starts_with("repeated"), named = !repeated && name != "binary";
    const auto data = open_dataset(folder.path(), Split::train, options);
    REQUIRE(data->count() == rows);
    CHECK(data->classes() == 3);
    CHECK(data->class_names() ==
          (named ? std::vector<std::string>{"ant", "bee", "cat"} : std::vector<std::string>()));
    // From the last to the first, so that nothing depends on what was read before.
    for (uint64_t i = rows; i-- > 0;) {
      CHECK(data->label(i) == i % 3);
      CHECK(shows(*data, i, repeated ? i % 4 : i));
    }
  }
}

TEST_CASE("a table may be in parts, and lie in data/") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "data");
  folder.file("data/train-00000-of-00002.parquet", table("plain"));
  CHECK(refusal_of(folder, Split::train, options) ==
        "/data/train-00000-of-00002.parquet: found 1 file of this part, expected the 2 of which its name "
        "tells");
  folder.file("data/train-00001-of-00002.parquet", table("repeated"));
  const auto data = open_dataset(folder.path(), Split::train, options);
  REQUIRE(data->count() == 22);
  CHECK(shows(*data, 10, 10));
  CHECK(shows(*data, 11 + 6, 2));
  CHECK(data->class_names().size() == 3);
  CHECK(
      refusal_of(folder, Split::test, options) ==
      ": found tables (.parquet) to train on but none to test on, expected both (train-*.parquet, and test-* "
      "or val-*)");
  folder.file("data/validation-00000-of-00001.parquet", table("snappy"));
  const auto test = open_dataset(folder.path(), Split::test, options);
  CHECK(test->count() == 11);
  // What tells one from another.
  CHECK(fingerprint_of(*test) != fingerprint_of(*data));
  folder.file("data/validation-00000-of-00001.parquet", table("gzip"));
  CHECK(fingerprint_of(*test) != fingerprint_of(*open_dataset(folder.path(), Split::test, options)));
}

TEST_CASE("tables that can't be read are refused by what they have") {
  const std::string file = "/train.parquet: ";
  CHECK(refusal_of_table("lists") ==
        file +
            "found the columns \"image.bytes, image.path, label.list.element\", expected the column "
            "\"label\" with whole numbers (INT64 or INT32)");
  CHECK(refusal_of_table("names") ==
        file +
            "found BYTE_ARRAY in the column \"label\", expected the column \"label\" with whole numbers "
            "(INT64 or INT32)");
  CHECK(refusal_of_table("no_columns") ==
        file +
            "found the columns \"pixels, class\", expected the column \"image\" with encoded pictures (a "
            "structure with \"bytes\", or BYTE_ARRAY)");
  CHECK(refusal_of_table("brotli") ==
        file + "found the codec BROTLI in the column \"label\", expected UNCOMPRESSED, SNAPPY, GZIP or ZSTD");
  CHECK(refusal_of_table("no_label") ==
        file + "found no value in place 1 of a page in the column \"label\", expected one in each row");
  CHECK(refusal_of_table("high_label") ==
        "/train.parquet, row 1: found the label 3, expected one from 0 to 2");
  const std::map<std::string, std::string> late{
      {"no_picture",
       "found no value in place 1 of a page in the column \"image.bytes\", expected one in each row"},
      {"delta",
       "found the encoding DELTA_LENGTH_BYTE_ARRAY in the column \"image.bytes\", expected PLAIN or "
       "RLE_DICTIONARY"}};
  for (const auto& [name, refusal] : late) {
    const TemporaryFolder folder;
    folder.file("train.parquet", table(name));
    const auto data = open_dataset(folder.path(), Split::train, options);
    try {
      pixels_of(*data, 0);
      FAIL("read");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      CHECK(std::string(error.what()) == (folder / "train.parquet").string() + ": " + refusal);
    }
  }
  const TemporaryFolder folder;
  folder.file("train.parquet", "PAR1");
  CHECK(refusal_of(folder, Split::train, options) ==
        file + "found 4 bytes, expected a Parquet file, which has 12 at least");
  folder.file("train.parquet", "PAR1 and then some text");
  CHECK(refusal_of(folder, Split::train, options) ==
        file + "found an end of \"text\", expected \"PAR1\", as Parquet files have");
}

TEST_CASE("a table that changes while it is used is refused") {
  const TemporaryFolder folder;
  folder.file("train.parquet", table("plain"));
  const auto data = open_dataset(folder.path(), Split::train, options);
  folder.file("train.parquet", table("snappy"));
  CHECK_THROWS_AS(pixels_of(*data, 0), Error);
}

// What is damaged is either refused in one line or read as something: it never ends the process, and takes no
// more memory than the file could ask for.
TEST_CASE("damaged tables are refused or read, and nothing else") {
  const TemporaryFolder folder;
  const auto attempt = [&](const std::string& content) {
    folder.file("train.parquet", content);
    try {
      const auto data = open_dataset(folder.path(), Split::train, options);
      uint64_t sum = 0;
      for (uint64_t i = 0; i < std::min<uint64_t>(data->count(), 64); ++i) {
        try {
          sum += pixels_of(*data, i)[0];
        } catch (const Error& error) {
          REQUIRE(error.code() == ErrorCode::bad_file);
        }
      }
      return sum > 0;
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::bad_file);
      REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
      return false;
    }
  };
  for (const std::string name : {"repeated", "repeated_2", "gzip", "zstd_2", "full"}) {
    const std::string good = table(name);
    REQUIRE(attempt(good));
    for (size_t size = 0; size < good.size(); size += 61) CHECK_FALSE(attempt(good.substr(0, size)));
    uint64_t read = 0;
    // Bytes of the headers and the metadata, one after the other, each changed in another way.
    for (size_t at = 0; at < good.size(); at += good.size() - at < 900 ? 1 : 7) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (at % 3 == 0 ? 0xff : at % 3 == 1 ? 0x80 : 1 << (at % 7)));
      read += attempt(bad);
    }
    CHECK(read > 0);
  }
}

TEST_CASE("pages are decompressed to what they are said to have, or refused") {
  using namespace parquet;
  const auto is = [](const std::vector<std::byte>& bytes, std::string_view text) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == text;
  };
  // "abc" and nine more of it, by a copy that overlaps itself; then "xy", and the first four bytes again.
  const auto good =
      bytes_of({18, 2 << 2, 'a', 'b', 'c', 1 | (5 << 2), 3, 1 << 2, 'x', 'y', 2 | (3 << 2), 14, 0});
  CHECK(is(decompressed(Codec::snappy, good, 18), "abcabcabcabcxyabca"));
  CHECK_THROWS_AS(decompressed(Codec::snappy, good, 17), BadPage);
  CHECK_THROWS_AS(decompressed(Codec::snappy, std::span(good).first(10), 18), BadPage);
  // A copy of what isn't there, and one of more than there is room for.
  CHECK_THROWS_AS(decompressed(Codec::snappy, bytes_of({8, 0, 'a', 1, 2}), 8), BadPage);
  CHECK_THROWS_AS(decompressed(Codec::snappy, bytes_of({4, 0, 'a', 1 | (7 << 2), 1}), 4), BadPage);
  // Literals whose lengths take bytes of their own.
  std::vector<std::byte> longer = bytes_of({200, 1, 60 << 2, 199});
  longer.resize(longer.size() + 200, std::byte{'z'});
  CHECK(is(decompressed(Codec::snappy, longer, 200), std::string(200, 'z')));
  // No memory for what few bytes can't become.
  CHECK_THROWS_AS(decompressed(Codec::snappy, good, uint64_t{1} << 31), BadPage);
  CHECK_THROWS_AS(decompressed(Codec::gzip, good, uint64_t{1} << 31), BadPage);
  const std::string zipped = gzipped("hello");
  CHECK(is(decompressed(Codec::gzip, to_bytes(zipped), 5), "hello"));
  CHECK_THROWS_AS(decompressed(Codec::gzip, to_bytes(zipped), 4), BadPage);
  CHECK_THROWS_AS(decompressed(Codec::gzip, to_bytes(zipped.substr(0, 12)), 5), BadPage);
  // A frame of a known size, of one block that is stored, and one that repeats a byte.
  const auto stored = bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 5, 5 << 3 | 1, 0, 0, 'h', 'e', 'l', 'l', 'o'});
  CHECK(is(decompressed(Codec::zstd, stored, 5), "hello"));
  CHECK_THROWS_AS(decompressed(Codec::zstd, stored, 4), BadPage);
  CHECK_THROWS_AS(decompressed(Codec::zstd, stored, 6), BadPage);
  CHECK_THROWS_AS(decompressed(Codec::zstd, std::span(stored).first(12), 5), BadPage);
  CHECK_THROWS_AS(decompressed(Codec::zstd, stored, uint64_t{1} << 31), BadPage);
  const auto run =
      bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 200, (200 & 31) << 3 | 1 << 1 | 1, 200 >> 5, 0, 'z'});
  CHECK(is(decompressed(Codec::zstd, run, 200), std::string(200, 'z')));
}

TEST_CASE("packed numbers are runs, and eight at a time") {
  using parquet::read_packed;
  // Three sevens, then eight numbers of three bits (0 to 7, the format's own example), the last six of which
  // there is no need for.
  const auto bytes = bytes_of({3 << 1, 7, 1 << 1 | 1, 0x88, 0xc6, 0xfa});
  CHECK(read_packed(bytes, 3, 5) == std::vector<uint32_t>{7, 7, 7, 0, 1});
  CHECK(read_packed(bytes, 3, 11) == std::vector<uint32_t>{7, 7, 7, 0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_THROWS_AS(read_packed(bytes, 3, 12), parquet::BadPage);
  CHECK_THROWS_AS(read_packed(std::span(bytes).first(5), 3, 11), parquet::BadPage);
  CHECK_THROWS_AS(read_packed(bytes, 33, 1), parquet::BadPage);
  CHECK(read_packed(bytes_of({2 << 1, 0x34, 0x12}), 13, 2) == std::vector<uint32_t>{0x1234, 0x1234});
  CHECK(read_packed({}, 0, 0).empty());
}

TEST_CASE("a table's columns are counted before memory is taken for their names") {
  // Thrift's compact protocol: a column with a long name, and a byte for each of a hundred thousand in it.
  const auto number = [](uint64_t value) {
    std::string bytes;
    for (; value > 127; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
    return bytes + static_cast<char>(value);
  };
  const auto element = [&](const std::string& name, uint64_t children) {
    return "\x48" + number(name.size()) + name + "\x15" + number(2 * children) + std::string(1, '\0');
  };
  const auto refusal = [&](const std::string& name, uint64_t count) {
    const std::string metadata = "\x15\x02\x19\xFC" + number(count + 2) + element("root", 1) +
                                 element(name, count) + std::string(count, '\0') +
                                 std::string("\x16\0\x19\x0C\0", 5);
    const uint32_t size = static_cast<uint32_t>(metadata.size());
    const TemporaryFolder folder;
    folder.file("train.parquet",
                "PAR1" + metadata + std::string(reinterpret_cast<const char*>(&size), 4) + "PAR1");
    return refusal_of(folder, Split::train, options);
  };
  CHECK(refusal("x", 100'000).find("too many columns") != std::string::npos);
  CHECK(refusal(std::string(10'000, 'x'), 9000).find("name that is too long") != std::string::npos);
  CHECK(refusal("x", 3).find("too ") == std::string::npos);
}

}  // namespace vitrine::test
