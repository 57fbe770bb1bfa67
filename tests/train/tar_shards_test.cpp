// WebDataset's shards that the test writes, right ones and others.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>

#include "images/png_writer.h"
#include "tests/train/sample_files.h"
#include "train/run/training_run.h"

namespace vitrine::test {
namespace {

const DatasetOptions options{.shape = {3, 5, 4}};

std::string png(uint64_t number) {
  std::vector<uint8_t> bytes(3 * 5 * 4);
  for (size_t p = 0; p < bytes.size(); ++p) bytes[p] = pattern(number, p);
  const std::vector<std::byte> file = png_of(4, 5, 3, bytes, "a picture");
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

bool shows(const Dataset& data, uint64_t i, uint64_t number) {
  const std::vector<uint8_t> pixels = pixels_of(data, i);
  for (size_t p = 0; p < 20; ++p) {
    for (size_t c = 0; c < 3; ++c) {
      if (pixels[c * 20 + p] != pattern(number, 3 * p + c)) return false;
    }
  }
  return true;
}

std::string octal(uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
  return text;
}

// A header and what follows it, filled up to whole blocks.
std::string member(const std::string& name, const std::string& content, char type = '0',
                   const std::string& prefix = "", uint64_t size = ~uint64_t{0}) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, octal(size == ~uint64_t{0} ? content.size() : size, 11));
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\0", 6) + "00");
  put(345, prefix);
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

const std::string end(1024, '\0');

std::string pax(const std::string& field) {
  // Its own length counts.
  const std::string rest = " " + field + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return member("PaxHeader", std::to_string(length) + rest, 'x');
}

std::string sample(const std::string& key, uint64_t number, const std::string& label) {
  return member(key + ".png", png(number)) + member(key + ".cls", label);
}

std::string refusal_of_shard(const std::string& content) {
  const TemporaryFolder folder;
  folder.file("train-0.tar", content);
  return refusal_of(folder, Split::train, options);
}

}  // namespace

TEST_CASE("shards are read in their order, with names of every kind") {
  const TemporaryFolder folder;
  const std::string folders(120, 'd'), long_name = folders + "/" + std::string(60, 'f') + ".png";
  folder.file("train-000001.tar", sample("later", 6, " 4\n") + end);
  folder.file("train-000000.tar",
              member("some/", "", '5') + sample("a", 0, "1") + member("b.seg.png", "a mask") +
                  member("b.json", R"({"label": 2, "more": [1]})") + member("b.PNG", png(1)) +
                  member("b.txt", "words") +
                  // POSIX's prefix, GNU's long name and pax's path.
                  member("c.png", png(2), '0', "in/a") + member("c.cls", "0", '0', "in/a") +
                  member("././@LongLink", long_name + '\0', 'L') + member(long_name, png(3)) +
                  member("././@LongLink", folders + "/" + std::string(60, 'f') + ".cls" + '\0', 'L') +
                  member(long_name, "3") + member("global", "20 comment=whatever\n", 'g') +
                  pax("path=" + folders + "/e.png") + pax("size=" + std::to_string(png(4).size())) +
                  member("short.png", png(4), '0', "", png(4).size()) + pax("path=" + folders + "/e.cls") +
                  member("short.cls", "3") + member("readme", "no sample") + member(".hidden", "nor this") +
                  end);
  const auto data = open_dataset(folder.path(), Split::train, options);
  REQUIRE(data->count() == 6);
  const uint32_t labels[] = {1, 2, 0, 3, 3, 4};
  const uint64_t pictures[] = {0, 1, 2, 3, 4, 6};
  for (uint64_t i = 6; i-- > 0;) {
    CHECK(data->label(i) == labels[i]);
    CHECK(shows(*data, i, pictures[i]));
  }
  CHECK(data->classes() == 5);
  CHECK(data->class_names().empty());
  // Other names are other data, though the labels are the same.
  folder.file("train-000001.tar", sample("other", 6, " 4\n") + end);
  CHECK(fingerprint_of(*data) != fingerprint_of(*open_dataset(folder.path(), Split::train, options)));
}

TEST_CASE("names in shards are numbered as the training set has them") {
  const auto named = [](const std::string& key, uint64_t number, const std::string& name) {
    return member(key + ".png", png(number)) + member(key + ".json", "{\"label\": \"" + name + "\"}");
  };
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "train");
  folder.file("train/x.tar", named("a", 0, "dog") + named("b", 1, "ant") + named("c", 2, "cow") + end);
  CHECK(refusal_of(folder, Split::test, options) ==
        ": found shards (.tar) to train on but none to test on, expected both (train-*.tar, and test-* or "
        "val-*)");
  folder.file("val-0.tar", named("a", 3, "dog") + end);
  CHECK(open_dataset(folder.path(), Split::train, options)->class_names() ==
        std::vector<std::string>{"ant", "cow", "dog"});
  const auto test = open_dataset(folder.path(), Split::test, options);
  CHECK(test->label(0) == 2);
  CHECK(test->classes() == 3);
  folder.file("test-0.tar", named("a", 3, "emu") + end);
  CHECK(refusal_of(folder, Split::test, options) ==
        "/test-0.tar, \"a.png\": found the class \"emu\", expected one of the 3 classes of the training set");
  CHECK(open_dataset(folder.path(), Split::validation, options)->count() == 1);
}

TEST_CASE("shards that are none, or hold something else, are refused by name") {
  const std::string good = sample("a", 0, "1"), at = "/train-0.tar at byte ";
  CHECK(refusal_of_shard(good + end) == "opened");
  CHECK(refusal_of_shard(good) ==
        at + std::to_string(good.size()) +
            ": it ends without two blocks of zeros, expected them behind the last member");
  CHECK(refusal_of_shard("") ==
        at + "0: it ends without two blocks of zeros, expected them behind the last member");
  CHECK(refusal_of_shard(gzipped(good + end) + std::string(600, 'x'))
            .starts_with(at + "0: the file begins with \"\\x1f\\x8b"));
  CHECK(refusal_of_shard(good + std::string(512, 'x') + end) ==
        at + std::to_string(good.size()) +
            ": found no header of a member, expected one with a right checksum");
  CHECK(refusal_of_shard(member("a.png", "x", '0', "", 5000)) ==
        at + "0: the member \"a.png\" has 5000 bytes, expected at most the 512 that follow");
  CHECK(refusal_of_shard(member("a.png", "", '2') + end) ==
        at + "0: the member \"a.png\" is a symbolic link, expected a file or a folder");
  CHECK(refusal_of_shard(member("a.png", "", 'S') + end) ==
        at + "0: the member \"a.png\" is a sparse file, expected a file or a folder");
  CHECK(refusal_of_shard(member("a.png", "", '3') + end) ==
        at + "0: the member \"a.png\" is a device, expected a file or a folder");
  CHECK(refusal_of_shard(pax("GNU.sparse.major=1") + good + end) ==
        at + "0: found a sparse file, expected whole ones");
  CHECK(refusal_of_shard(pax("size=12345678901234567890123") + good + end) ==
        at + "0: found the size \"12345678901234567890123\", expected a number");
  CHECK(refusal_of_shard(member("PaxHeader", "99 path=x\n", 'x') + good + end) ==
        at + "0: found fields (pax) that break their rules, expected \"LENGTH KEY=VALUE\"");
  const std::string in = "/train-0.tar, sample \"a\": ";
  CHECK(refusal_of_shard(member("a.png", png(0)) + end) ==
        in + "found no label, expected KEY.cls or KEY.json beside the picture");
  CHECK(refusal_of_shard(member("a.cls", "0") + end) ==
        in + "found no picture, expected KEY.jpg, .jpeg, .png or .webp beside the label");
  CHECK(refusal_of_shard(sample("a", 0, "cat") + end) ==
        in + "found the label \"cat\", expected a number from 0 to 3999999");
  CHECK(refusal_of_shard(sample("a", 0, "4000000") + end) ==
        in + "found the label \"4000000\", expected a number from 0 to 3999999");
  CHECK(refusal_of_shard(member("a.png", png(0)) + member("a.json", R"({"class": 1})") + end) ==
        in + "found no class in \"a.json\", expected \"label\" with a number or a name");
  CHECK(refusal_of_shard(member("a.png", png(0)) + member("a.jpg", png(0)) + end) ==
        in + "found \"a.png\" and \"a.jpg\", expected one of them");
  CHECK(refusal_of_shard(member("readme", "nothing else") + end) ==
        "/train-0.tar: found no samples, expected pictures (KEY.jpg) with labels (KEY.cls) in the shards");
  // A broken picture is named.
  const TemporaryFolder folder;
  folder.file("train-0.tar", member("a.png", "no picture") + member("a.cls", "0") + end);
  const auto data = open_dataset(folder.path(), Split::train, options);
  try {
    pixels_of(*data, 0);
    FAIL("decoded");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    CHECK(std::string(error.what()).starts_with((folder / "train-0.tar").string() + ", \"a.png\": "));
  }
}

TEST_CASE("damaged shards are refused or read, and nothing else") {
  const std::string good = member("././@LongLink", std::string("a.png\0", 6), 'L') + sample("a", 0, "1") +
                           pax("path=b.png") + sample("b", 1, "0") + end;
  const TemporaryFolder folder;
  const auto attempt = [&](const std::string& content) {
    folder.file("train-0.tar", content);
    try {
      const auto data = open_dataset(folder.path(), Split::train, options);
      for (uint64_t i = 0; i < data->count(); ++i) pixels_of(*data, i);
      return true;
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::bad_file);
      return false;
    }
  };
  REQUIRE(attempt(good));
  for (size_t size = 0; size + 1024 < good.size(); size += 97) CHECK_FALSE(attempt(good.substr(0, size)));
  for (size_t at = 0; at < good.size(); at += 5) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (at % 2 ? 0xff : 1 << (at % 7)));
    attempt(bad);
  }
}

TEST_CASE("shards are looked through once, and again when one changes") {
  const CacheFolder cache;
  const TemporaryFolder folder;
  const DatasetOptions kept{.shape = {3, 5, 4}, .least_indexed = 1, .settled_seconds = -1e9};
  folder.file("train-0.tar", sample("a", 0, "1") + sample("b", 1, "0") + end);
  folder.file("train-1.tar", sample("c", 2, "2") + end);
  const std::string print = fingerprint_of(*open_dataset(folder.path(), Split::train, kept));
  REQUIRE(cache.files().size() == 1);
  const auto written = std::filesystem::last_write_time(cache.files()[0]);
  const auto again = open_dataset(folder.path(), Split::train, kept);
  CHECK(std::filesystem::last_write_time(cache.files()[0]) == written);  // not made anew
  CHECK(fingerprint_of(*again) == print);
  for (uint64_t i = 0; i < 3; ++i) CHECK(shows(*again, i, i));
  folder.file("train-1.tar", sample("c", 2, "2") + sample("d", 3, "1") + end);
  CHECK(open_dataset(folder.path(), Split::train, kept)->count() == 4);
}

TEST_CASE("labels of test shards that look like numbers are names where the training set has names") {
  const TemporaryFolder folder;
  std::string train;
  for (int i = 1; i <= 12; ++i) {
    const std::string name = std::to_string(i);
    train += member(name + ".png", png(0)) + member(name + ".json", "{\"label\": \"" + name + "\"}");
  }
  train += member("x.png", png(0)) + member("x.json", "{\"label\": \"unknown\"}");
  folder.file("train-0.tar", train + end);
  folder.file("test-0.tar", member("t.png", png(0)) + member("t.json", "{\"label\": \"2\"}") + end);
  // 1, 10, 11, 12, 2, ...
  CHECK(open_dataset(folder.path(), Split::test, options)->label(0) == 4);
}

TEST_CASE("an archive beside the folder that it was unpacked to is no shard") {
  const TemporaryFolder folder;
  for (const char* part : {"train", "test"}) {
    std::filesystem::create_directories(folder / part / "cat");
    write_png(folder / (std::string(part) + "/cat/a.png"), 4, 5, 3, std::vector<uint8_t>(60));
    folder.file(std::string(part) + ".tar", member("cat/a.png", png(0)) + end);
  }
  CHECK(open_dataset(folder.path(), Split::train, options)->class_names() == std::vector<std::string>{"cat"});
}

}  // namespace vitrine::test
