#include "runtime/util/atomic_folder.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/util/error.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

const std::vector<std::string> names{"a", "b"};

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

std::string refusal(const std::filesystem::path& target) {
  try {
    AtomicFolder folder(target, names);
    folder.commit();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    return error.what();
  }
  return "made";
}

}  // namespace

TEST_CASE("a folder appears with all its files, and replaces the one before") {
  const TemporaryFolder place;
  const std::filesystem::path target = place / "new/saved/";
  {
    AtomicFolder folder(target, names);
    write(folder.path() / "a", "1");
    write(folder.path() / "b", "2");
    CHECK_FALSE(std::filesystem::exists(target));
    folder.commit();
  }
  CHECK(read_whole_file(target / "a") == "1");
  CHECK(read_whole_file(target / "b") == "2");
  {
    AtomicFolder folder(target, names);
    write(folder.path() / "a", "3");
    CHECK(read_whole_file(target / "a") == "1");
    folder.commit();
  }
  CHECK(read_whole_file(target / "a") == "3");
  CHECK_FALSE(std::filesystem::exists(target / "b"));
  // Through a link, which stays one.
  test::make_link(target, place / "link");
  {
    AtomicFolder folder(place / "link", names);
    write(folder.path() / "b", "4");
    folder.commit();
  }
  CHECK(std::filesystem::is_symlink(place / "link"));
  CHECK(read_whole_file(target / "b") == "4");
  CHECK_FALSE(std::filesystem::exists(target / "a"));
  // An empty one is as good as none.
  std::filesystem::create_directory(place / "empty");
  {
    AtomicFolder folder(place / "empty", names);
    write(folder.path() / "a", "5");
    folder.commit();
  }
  CHECK(read_whole_file(place / "empty" / "a") == "5");
  CHECK(place.names() == std::vector<std::string>{"empty", "link", "new"});
  CHECK(std::distance(std::filesystem::directory_iterator(place / "new"), {}) == 1);
}

TEST_CASE("a folder that is not finished leaves everything as it was") {
  const TemporaryFolder place;
  std::filesystem::create_directory(place / "saved");
  write(place / "saved" / "a", "old");
  {
    AtomicFolder folder(place / "saved", names);
    write(folder.path() / "a", "new");
    write(folder.path() / "b", "new");
  }
  CHECK(place.names() == std::vector<std::string>{"saved"});
  CHECK(read_whole_file(place / "saved" / "a") == "old");
  CHECK_FALSE(std::filesystem::exists(place / "saved" / "b"));
}

TEST_CASE("nobody's files are replaced") {
  const TemporaryFolder place;
  write(place / "a file", "mine");
  std::filesystem::create_directory(place / "saved");
  write(place / "saved" / "letter.txt", "mine");
  CHECK(refusal(place / "saved").find("letter.txt") != std::string::npos);
  CHECK(refusal(place / "a file").find("found a file") != std::string::npos);
  CHECK(refusal(place / "a file" / "x").find("a file") != std::string::npos);
  CHECK(refusal("") != "made");
  CHECK(refusal("/") != "made");
  // Not even those that come while it is written.
  {
    AtomicFolder folder(place / "late", names);
    write(folder.path() / "a", "new");
    std::filesystem::create_directory(place / "late");
    write(place / "late" / "letter.txt", "mine");
    CHECK_THROWS_AS(folder.commit(), Error);
  }
  CHECK(read_whole_file(place / "late" / "letter.txt") == "mine");
  CHECK(place.names() == std::vector<std::string>{"a file", "late", "saved"});
}

}  // namespace vitrine::test
