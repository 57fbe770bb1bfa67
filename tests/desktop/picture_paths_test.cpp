#include "apps/desktop/engine/picture_paths.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <string>

#include "runtime/util/error.h"
#include "runtime/util/system.h"
#include "tests/support/pictures.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::desktop {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Paths = std::vector<fs::path>;

std::vector<std::string> names_of(const Paths& paths) {
  std::vector<std::string> names;
  for (const fs::path& path : paths) names.push_back(path.filename().string());
  return names;
}

}  // namespace

TEST_CASE("pasted text is read as paths, however it was copied") {
  CHECK(paths_in_text("/a/cat.jpg") == Paths{"/a/cat.jpg"});
  CHECK(paths_in_text("  \n\t/a/my cat.jpg \r\n\n") == Paths{"/a/my cat.jpg"});
  CHECK(paths_in_text("\"/a/my cat.jpg\"") == Paths{"/a/my cat.jpg"});
  CHECK(paths_in_text("'/a/my cat.jpg' '/b/x.png'\n") == Paths{"/a/my cat.jpg", "/b/x.png"});
  CHECK(paths_in_text("/a/it's.jpg") == Paths{"/a/it's.jpg"});
  CHECK(paths_in_text("'tis.jpg") == Paths{"'tis.jpg"});
  CHECK(paths_in_text("/a/b.jpg\n/a/c.jpg\r\nrelative.png") == Paths{"/a/b.jpg", "/a/c.jpg", "relative.png"});
  CHECK(paths_in_text("file:///a/my%20cat.jpg") == Paths{"/a/my cat.jpg"});
  CHECK(paths_in_text("file://localhost/a/%C3%A4.jpg") == Paths{"/a/\xc3\xa4.jpg"});
  CHECK(paths_in_text("file:/a/100%.jpg") == Paths{"/a/100%.jpg"});
  CHECK(paths_in_text("file:///a/b.jpg file:///c%2Fd.jpg") == Paths{"/a/b.jpg", "/c/d.jpg"});
  CHECK(paths_in_text("file:///a/my cat.jpg") == Paths{"/a/my cat.jpg"});
  CHECK(paths_in_text("x-special/nautilus-clipboard\ncopy\nfile:///a/b.jpg\n") == Paths{"/a/b.jpg"});
  CHECK(paths_in_text("# comment\r\nfile:///a/b.jpg\r\n") == Paths{"/a/b.jpg"});
  CHECK(paths_in_text("copy") == Paths{"copy"});
  CHECK(paths_in_text("#1.jpg") == Paths{"#1.jpg"});
  CHECK(paths_in_text(" \n ").empty());
  CHECK(paths_in_text("").empty());
  REQUIRE(system::variable("HOME"));
  CHECK(paths_in_text("~/x.jpg") == Paths{fs::path(system::variable("HOME")) / "x.jpg"});
  CHECK(paths_in_text("~x.jpg") == Paths{"~x.jpg"});
}

TEST_CASE("backslashes are the system's own: of folders, or in front of what a shell would read") {
  if (fs::path::preferred_separator == '\\') {
    CHECK(paths_in_text("C:\\a\\(my cat).jpg") == Paths{"C:\\a\\(my cat).jpg"});
    CHECK(paths_in_text("\"C:\\a\\my cat.jpg\" \\\\pc\\b.png") ==
          Paths{"C:\\a\\my cat.jpg", "\\\\pc\\b.png"});
    CHECK(paths_in_text("file:///C:/a/my%20cat.jpg") == Paths{"C:/a/my cat.jpg"});
  } else {
    CHECK(paths_in_text("'/a/it'\\''s.jpg'") == Paths{"/a/it's.jpg"});  // as shells quote an apostrophe
    CHECK(paths_in_text("/a/my\\ cat\\(2\\).jpg") == Paths{"/a/my cat(2).jpg"});
  }
}

TEST_CASE("what is no file of this machine is refused in a sentence") {
  CHECK_THROWS_MATCHES(paths_in_text("https://example.org/cat.jpg"), Error,
                       MessageMatches(ContainsSubstring("example.org") && ContainsSubstring("web")));
  CHECK_THROWS_MATCHES(paths_in_text("file://server/cat.jpg"), Error,
                       MessageMatches(ContainsSubstring("server") && ContainsSubstring("machine")));
  CHECK_THROWS_AS(paths_in_text("file:///a%00b"), Error);
}

TEST_CASE("files are in the order that people expect") {
  const std::vector<std::string> sorted{"",        "1.jpg",    "2.jpg",   "10.jpg",   "A1.png",  "a2.png",
                                        "a10.png", "a10b.png", "a/2.png", "ab/1.png", "cat.jpg", "cat 2.jpg"};
  // Every pair, both ways round, apart from the three whose order is asked for below.
  const auto before = [](const char* a, const char* b) { return comes_before(a, b) && !comes_before(b, a); };
  CHECK(before("", "1.jpg"));
  CHECK(before("2.jpg", "10.jpg"));
  CHECK(before("1.jpg", "2.jpg"));
  CHECK(before("a9z", "a10"));
  CHECK(before("A1.png", "a2.png"));
  CHECK(before("a1.png", "B1.png"));
  CHECK(before("B1.png", "c1.png"));
  CHECK(before("img007.jpg", "img8.jpg"));
  CHECK(before("img08.jpg", "img8.jpg"));  // the same number: something has to decide
  CHECK(before("Cat.jpg", "cat.jpg"));
  CHECK(before("a/z.jpg", "a b/a.jpg"));
  CHECK(before("99999999999999999999998.jpg", "99999999999999999999999.jpg"));  // past 64 bits
  CHECK(before("9.jpg", "99999999999999999999999.jpg"));
  CHECK(before("1-2.jpg", "1-10.jpg"));
  // A strict order: whatever the start, sorting gives one result.
  std::vector<std::string> once = sorted, again = sorted;
  std::ranges::sort(once, comes_before);
  do {
    std::vector<std::string> mixed = again;
    std::ranges::sort(mixed, comes_before);
    REQUIRE(mixed == once);
  } while (std::ranges::next_permutation(again.begin() + 4, again.begin() + 10).found);
  for (const std::string& name : once) CHECK_FALSE(comes_before(name, name));
}

TEST_CASE("a folder's pictures stay together, however the system writes folders") {
  const test::TemporaryFolder folder;
  const Paths paths{folder / "a/2.png", folder / "a/10.png", folder / "a b.png", folder / "a-1.png"};
  CHECK(pictures_of({paths[3], paths[1], paths[2], paths[0]}) == paths);
}

TEST_CASE("a folder's pictures are found by name and by content") {
  const test::TemporaryFolder folder;
  std::string png;
  for (const test::Picture& picture : test::pictures()) {
    if (picture.path().extension() == ".png") png = test::read_whole_file(picture.path());
  }
  REQUIRE_FALSE(png.empty());
  for (const char* name : {"10.png", "2.PNG", "1.jpeg", "holiday", "notes.txt.png"}) folder.file(name, png);
  folder.file("broken.jpg", "nothing of a picture");  // is called one: opening it says what is wrong
  folder.file("notes.txt", "text");
  folder.file("empty", "");
  fs::create_directory(folder / "inside.png");
  test::make_link(folder / "nowhere", folder / "link");
  CHECK(names_of(pictures_in_folder(folder.path())) ==
        std::vector<std::string>{"1.jpeg", "2.PNG", "10.png", "broken.jpg", "holiday", "notes.txt.png"});
  CHECK(
      names_of(pictures_of({folder / "holiday", folder / "10.png", folder / "2.PNG", folder / "gone.png"})) ==
      std::vector<std::string>{"2.PNG", "10.png", "gone.png", "holiday"});
  CHECK(pictures_of({folder.path(), folder / "10.png"}).size() == 7);

  const test::TemporaryFolder none;
  none.file("notes.txt", "text");
  CHECK_THROWS_MATCHES(pictures_in_folder(none.path()), Error,
                       MessageMatches(ContainsSubstring("holds no JPEG")));
  CHECK_THROWS_MATCHES(pictures_in_folder(none / "gone"), Error,
                       MessageMatches(ContainsSubstring("cannot read")));
}

}  // namespace vitrine::desktop
