#include "runtime/util/mapped_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <string>
#include <utility>

#include "runtime/util/atomic_file.h"
#include "runtime/util/error.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// Bytes of the file `path` that this process has in memory.
size_t resident_bytes(const std::filesystem::path& path) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool ours = false;
  size_t kilobytes = 0;
  while (std::getline(maps, line)) {
    if (line.find(path.string()) != std::string::npos) ours = true;
    if (ours && line.starts_with("Rss:")) {
      kilobytes += std::stoul(line.substr(4));
      ours = false;
    }
  }
  return kilobytes * 1024;
}

}  // namespace

TEST_CASE("a mapped file is the bytes of the file, also once it is moved, renamed and replaced") {
  const TemporaryFolder folder;
  const auto path = folder.file("a.bin", "some bytes");
  MappedFile file(path);
  CHECK(text_of(file) == "some bytes");
  CHECK(file.path() == path);
  MappedFile moved = std::move(file);
  std::filesystem::rename(path, folder / "b.bin");
  CHECK(text_of(moved) == "some bytes");
  moved = MappedFile(folder.file("c.bin", "other"));
  CHECK(text_of(moved) == "other");
  write_file_atomically(folder / "c.bin", to_bytes("newer"));
  CHECK(text_of(moved) == "other");
  CHECK(text_of(MappedFile(folder / "c.bin")) == "newer");
}

TEST_CASE("an empty file maps to no bytes") {
  const TemporaryFolder folder;
  CHECK(MappedFile(folder.file("empty", "")).bytes().empty());
}

TEST_CASE("what cannot be mapped is a bad file and named") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "folder");
  folder.file("file", "x");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto message = [](const std::filesystem::path& path) -> std::string {
    try {
      const MappedFile file(path);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      CHECK_THAT(error.what(), ContainsSubstring(path.filename().string()));
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(message(folder / "missing"), ContainsSubstring("No such file"));
  CHECK_THAT(message(folder / "file" / "below"), ContainsSubstring("Not a directory"));
  CHECK_THAT(message(folder / "folder"), ContainsSubstring("is a folder"));
  CHECK_THAT(message(folder / "pipe"), ContainsSubstring("not a regular file"));
  CHECK_THAT(message("/dev/zero"), ContainsSubstring("not a regular file"));
  if (geteuid() != 0) {  // root may read everything
    REQUIRE(chmod((folder / "file").c_str(), 0) == 0);
    CHECK_THAT(message(folder / "file"), ContainsSubstring("Permission denied"));
  }
}

TEST_CASE("forgotten bytes leave memory and can be read again") {
  const TemporaryFolder folder;
  const std::string content(8 << 20, 'v');
  const auto path = folder.file("big.bin", content);
  const MappedFile file(path);
  REQUIRE(text_of(file) == content);
  if (resident_bytes(path) == 0) SKIP("what is mapped can't be seen here");
  CHECK(resident_bytes(path) >= content.size());
  file.forget(file.bytes());
  CHECK(resident_bytes(path) <= 4096);  // the last, partial page may stay
  CHECK(text_of(file) == content);
  file.forget(file.bytes().subspan(5, 10));  // less than a page: nothing happens
  file.forget({});
  CHECK(text_of(file) == content);
}

}  // namespace vitrine::test
