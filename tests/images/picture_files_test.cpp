#include "images/picture_files.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/util/error.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {
namespace {

using Paths = std::vector<std::filesystem::path>;

std::string refusal(const Paths& named) {
  try {
    picture_files(named);
    return "";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    return error.what();
  }
}

TEST_CASE("files stand for themselves and folders for the pictures in them") {
  const TemporaryFolder folder;
  for (const char* name : {"b.JPG", "a.png", "c.webp", "d.jpeg", "notes.txt", "png", ".png"})
    folder.file(name, "");
  std::filesystem::create_directory(folder / "inner.png");
  test::make_link("nowhere", folder / "broken.jpg");
  const Paths expected{folder / "missing.gif", folder / "a.png",  folder / "b.JPG",    folder / "broken.jpg",
                       folder / "c.webp",      folder / "d.jpeg", folder / "notes.txt"};
  CHECK(picture_files(Paths{folder / "missing.gif", folder.path(), folder / "notes.txt"}) == expected);
  CHECK(picture_files(Paths{}).empty());
}

TEST_CASE("a folder without pictures is told") {
  const TemporaryFolder folder;
  folder.file("a.gif", "");
  CHECK(refusal({folder.path()}) == "the folder " + folder.path().string() +
                                        " holds no pictures (files named *.jpg, *.jpeg, *.png or *.webp)");
}

}  // namespace
}  // namespace vitrine::test
