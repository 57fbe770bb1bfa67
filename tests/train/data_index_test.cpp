// What is kept of large data sets: used while it is right, and never longer.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "images/png_writer.h"
#include "tests/support/system.h"
#include "tests/train/sample_files.h"
#include "train/data/files/file_list.h"
#include "train/data/files/index_store.h"

namespace vitrine::test {
namespace {

const DatasetOptions options{.shape = {3, 2, 2}, .least_indexed = 1, .settled_seconds = -1e9};

void write_picture(const TemporaryFolder& folder, const std::string& name, uint8_t value) {
  std::filesystem::create_directories((folder / name).parent_path());
  const std::vector<uint8_t> bytes(12, value);
  write_png(folder / name, 2, 2, 3, bytes);
}

// Swaps the names of the pictures in an index, so that a test sees whether it is used.
void spoil(const std::filesystem::path& file, bool right_checksum) {
  std::string bytes = read_whole_file(file);
  const size_t a = bytes.rfind("a.png");
  REQUIRE(a != std::string::npos);
  bytes[a] = 'b';
  if (right_checksum) {
    // It stands before the content, which begins with how many numbers follow.
    for (size_t at = 0; at + 8 <= bytes.size(); ++at) {
      const std::string changed = bytes.substr(at + 8);
      std::string was = changed;
      was[a - at - 8] = 'a';
      const uint64_t sum = hash_of(was), now = hash_of(changed);
      if (std::memcmp(bytes.data() + at, &sum, 8) != 0) continue;
      std::memcpy(bytes.data() + at, &now, 8);
      break;
    }
  }
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("a list of files gives back its names, sorted from where it is asked to") {
  FileList list;
  for (const char* name : {"z", "c", "", "b"}) list.add(name);
  list.sort_from(1);
  list.shrink();
  REQUIRE(list.size() == 4);
  const auto check = [](const FileList& found) {
    CHECK(found[0] == "z");
    CHECK(found[1].empty());
    CHECK(found[2] == "b");
    CHECK(found[3] == "c");
  };
  check(list);
  IndexWriter writer;
  list.write(writer);
  FileList again;
  IndexReader reader(writer.bytes());
  CHECK(again.read(reader));
  CHECK(reader.complete());
  check(again);
  // Cut off anywhere it is none.
  for (size_t size = 0; size < writer.bytes().size(); ++size) {
    IndexReader cut(std::span(writer.bytes()).first(size));
    CHECK_FALSE((again.read(cut) && cut.complete() && again.size() == 4));
  }
}

TEST_CASE("a folder is listed once, and again when it changes") {
  const CacheFolder cache;
  const TemporaryFolder folder;
  write_picture(folder, "train/cat/a.png", 1);
  write_picture(folder, "train/cat/b.png", 2);
  write_picture(folder, "train/dog/c.png", 3);
  const auto first = open_dataset(folder.path(), Split::train, options);
  CHECK(pixels_of(*first, 0)[0] == 1);
  REQUIRE(cache.files().size() == 1);
  // What is kept is what is read: with a.png called b.png there.
  spoil(cache.files()[0], true);
  const auto second = open_dataset(folder.path(), Split::train, options);
  REQUIRE(second->count() == 3);
  CHECK(pixels_of(*second, 0)[0] == 2);
  CHECK(pixels_of(*second, 2)[0] == 3);
  CHECK(second->label(2) == 1);
  // One whose checksum doesn't fit isn't read.
  std::filesystem::remove(cache.files()[0]);
  open_dataset(folder.path(), Split::train, options);
  spoil(cache.files()[0], false);
  CHECK(pixels_of(*open_dataset(folder.path(), Split::train, options), 0)[0] == 1);
}

TEST_CASE("an index of another state of the folder isn't read") {
  const CacheFolder cache;
  const TemporaryFolder folder;
  write_picture(folder, "train/cat/a.png", 1);
  write_picture(folder, "train/dog/c.png", 3);
  // Earlier by more than a tick of the file system's clock.
  test::set_time(folder / "train/dog", std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  REQUIRE(open_dataset(folder.path(), Split::train, options)->count() == 2);
  write_picture(folder, "train/dog/d.png", 4);
  REQUIRE(open_dataset(folder.path(), Split::train, options)->count() == 3);
  std::filesystem::remove(folder / "train/cat/a.png");
  write_picture(folder, "train/cat/b.png", 5);
  CHECK(pixels_of(*open_dataset(folder.path(), Split::train, options), 0)[0] == 5);
  std::filesystem::rename(folder / "train/cat", folder / "train/emu");
  const auto renamed = open_dataset(folder.path(), Split::train, options);
  CHECK(renamed->class_names() == std::vector<std::string>{"dog", "emu"});
  CHECK(pixels_of(*renamed, 2)[0] == 5);
  CHECK(cache.files().size() == 1);
}

TEST_CASE("nothing is kept of few files, nor of what was changed just now") {
  const CacheFolder cache;
  const TemporaryFolder folder;
  write_picture(folder, "train/cat/a.png", 1);
  DatasetOptions few = options, recent = options;
  few.least_indexed = 2;
  recent.settled_seconds = 3600;
  open_dataset(folder.path(), Split::train, few);
  open_dataset(folder.path(), Split::train, recent);
  CHECK(cache.files().empty());
}

TEST_CASE("a damaged index is none") {
  const CacheFolder cache;
  const TemporaryFolder folder;
  const IndexKey key{
      .kind = "test", .path = folder.path(), .stamps = {stamp_of(folder.path())}, .settled_seconds = -1e9};
  CHECK_FALSE(load_index(key));
  const std::vector<std::byte> content = to_bytes("what was found out");
  save_index(key, content);
  CHECK(load_index(key) == content);
  IndexKey other = key;
  other.stamps[0].changed += 1;
  CHECK_FALSE(load_index(other));
  other = key;
  other.kind = "rest";
  CHECK_FALSE(load_index(other));
  REQUIRE(cache.files().size() == 1);
  const std::string good = read_whole_file(cache.files()[0]);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    std::ofstream(cache.files()[0], std::ios::binary) << bad;
    CHECK_FALSE(load_index(key));
    std::ofstream(cache.files()[0], std::ios::binary) << good.substr(0, at);
    CHECK_FALSE(load_index(key));
  }
  std::ofstream(cache.files()[0], std::ios::binary) << good;
  CHECK(load_index(key) == content);
}

}  // namespace vitrine::test
