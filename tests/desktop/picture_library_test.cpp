#include "apps/desktop/engine/picture_library.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "images/decoders.h"
#include "images/png_writer.h"
#include "images/shrink.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::desktop {
namespace {

using Catch::Matchers::ContainsSubstring;
using State = Thumbnail::State;

// Frames as the app has them, until nothing is left to do.
void frames(Worker& worker) {
  while (!worker.idle()) {
    worker.wait();
    worker.run_ui_tasks();
  }
}

// Frames in which these thumbnails are visible.
void show(PictureLibrary& library, Worker& worker, size_t first, size_t last) {
  const auto waits = [&] {
    bool any = false;
    for (size_t i = first; i < last; ++i) any |= library.thumbnail(i).state == State::waiting;
    return any;
  };
  while (waits()) frames(worker);
}

Image picture(uint32_t width, uint32_t height, uint8_t red) {
  Image image = black_image(width, height);
  for (size_t i = 0; i < image.pixels.size(); i += 4) {
    image.pixels[i] = red;
    image.pixels[i + 1] = static_cast<uint8_t>(i / 4 % width);
  }
  return image;
}

void write_png(const std::filesystem::path& path, const Image& image) {
  vitrine::write_png(path, image.width, image.height, 4, image.pixels);
}

}  // namespace

TEST_CASE("a folder is opened in order, and the selection moves within it") {
  const test::TemporaryFolder folder;
  for (const char* name : {"10.png", "9.png", "1.png"}) write_png(folder / name, picture(3, 2, 1));
  Worker worker;
  PictureLibrary library(worker);
  CHECK(library.empty());
  CHECK_FALSE(library.selected());
  CHECK_FALSE(library.next());
  CHECK_FALSE(library.previous());
  int opened = 0;
  library.open({folder.path()}, [&] { ++opened; });
  CHECK(library.empty());  // nothing happens on this thread
  frames(worker);
  CHECK(opened == 1);
  REQUIRE(library.size() == 3);
  CHECK(library.name(0) == "1.png");
  CHECK(library.name(1) == "9.png");
  CHECK(library.name(2) == "10.png");
  CHECK(library.selected() == 0);
  CHECK_FALSE(library.previous());
  CHECK(library.next());
  CHECK(library.next());
  CHECK_FALSE(library.next());
  CHECK(library.selected() == 2);
  CHECK(library.previous());
  library.select(0);
  library.select(99);
  CHECK(library.selected() == 0);
}

TEST_CASE("thumbnails are made of each picture, and a broken one doesn't stop the others") {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 50; ++i)
    write_png(folder / ("p" + std::to_string(i) + ".png"),
              picture(300 + static_cast<uint32_t>(i), 200, static_cast<uint8_t>(i)));
  folder.file("p7.png", "no picture");
  std::vector<std::filesystem::path> dropped;
  for (int i = 49; i >= 0; --i) dropped.push_back(folder / ("p" + std::to_string(i) + ".png"));
  dropped.push_back(folder / "p50.png");  // isn't there
  Worker worker;
  PictureLibrary library(worker);
  library.open(dropped);
  frames(worker);
  REQUIRE(library.size() == 51);
  CHECK(library.thumbnail(0).state == State::waiting);
  // Only some are asked for at a time, so that what is visible comes first after scrolling.
  for (size_t i = 0; i < 51; ++i) library.thumbnail(i);
  CHECK(worker.status().queued <= 8);
  show(library, worker, 0, 51);
  for (size_t i = 0; i < 51; ++i) {
    INFO(library.name(i));
    CHECK(library.name(i) == "p" + std::to_string(i) + ".png");
    const Thumbnail& thumbnail = library.thumbnail(i);
    if (i == 7 || i == 50) {
      CHECK(thumbnail.state == State::broken);
      CHECK_THAT(thumbnail.error, ContainsSubstring(library.name(i)));
      continue;
    }
    REQUIRE(thumbnail.state == State::ready);
    const Image whole = picture(300 + static_cast<uint32_t>(i), 200, static_cast<uint8_t>(i));
    CHECK(thumbnail.image->width == 128);
    CHECK(thumbnail.image->pixels == shrunk(whole, 128).pixels);
    CHECK(thumbnail.width == whole.width);
    CHECK(thumbnail.height == 200);
  }
  CHECK_FALSE(worker.take_error());  // the mark says it
}

TEST_CASE("no more thumbnails are kept than were looked at lately") {
  const test::TemporaryFolder folder, elsewhere;
  write_png(elsewhere / "one.png", picture(2, 2, 9));
  const size_t count = PictureLibrary::thumbnails_kept + 20;
  for (size_t i = 0; i < count; ++i)  // many files that are quickly made and read
    test::make_link(elsewhere / "one.png", folder / (std::to_string(i) + ".png"));
  Worker worker;
  PictureLibrary library(worker);
  library.open({folder.path()});
  frames(worker);
  REQUIRE(library.size() == count);
  for (size_t i = 0; i < count; i += 8) show(library, worker, i, std::min(i + 8, count));
  CHECK(library.thumbnail(count - 1).state == State::ready);
  CHECK(library.thumbnail(count - PictureLibrary::thumbnails_kept / 2).state == State::ready);
  CHECK(library.thumbnail(0).state == State::waiting);
  show(library, worker, 0, 1);
  CHECK(library.thumbnail(0).state == State::ready);
}

TEST_CASE("thumbnails are turned as EXIF data asks, and back") {
  const test::Path path = test::Path(VITRINE_TEST_DATA) / "images" / "pictures" / "jpeg_exif_6.jpg";
  Worker worker;
  PictureLibrary library(worker);
  library.open({path});
  frames(worker);
  for (const bool exif : {false, true, false}) {
    INFO(exif);
    library.thumbnail(0);  // what is under way is of the way before
    library.turn_by_exif(exif);
    show(library, worker, 0, 1);
    const Image whole = decode_image(path, {.exif = exif});
    const Thumbnail& thumbnail = library.thumbnail(0);
    REQUIRE(thumbnail.state == State::ready);
    CHECK(thumbnail.width == whole.width);
    CHECK(thumbnail.height == whole.height);
    CHECK((thumbnail.image->pixels == shrunk(whole, PictureLibrary::thumbnail_side).pixels));
  }
}

TEST_CASE("what is opened last is what is open") {
  const test::TemporaryFolder a, b, none;
  for (const char* name : {"1.png", "2.png"}) write_png(a / name, picture(2, 2, 1));
  write_png(b / "3.png", picture(2, 2, 1));
  Worker worker;
  PictureLibrary library(worker);
  library.open({a.path()});
  library.open({b.path()});
  frames(worker);
  REQUIRE(library.size() == 1);
  CHECK(library.name(0) == "3.png");
  const uint64_t number = library.list_number();
  // What can't be opened leaves what was there.
  library.open({none.path()});
  frames(worker);
  CHECK(library.size() == 1);
  CHECK(library.list_number() == number);
  CHECK_THAT(worker.take_error().value_or(""), ContainsSubstring("holds no JPEG"));
  library.open({a.path()});
  frames(worker);
  CHECK(library.list_number() != number);
  CHECK(library.size() == 2);
}

TEST_CASE("thumbnails that were cancelled are asked for again") {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 5; ++i) write_png(folder / (std::to_string(i) + ".png"), picture(600, 600, 1));
  Worker worker;
  PictureLibrary library(worker);
  library.open({folder.path()});
  frames(worker);
  for (size_t i = 0; i < 5; ++i) library.thumbnail(i);
  worker.cancel();
  frames(worker);
  show(library, worker, 0, 5);
  for (size_t i = 0; i < 5; ++i) CHECK(library.thumbnail(i).state == State::ready);
}

TEST_CASE("a picture that turned out to be broken stays marked") {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 2; ++i) write_png(folder / (std::to_string(i) + ".png"), picture(2, 2, 1));
  Worker worker;
  PictureLibrary library(worker);
  library.open({folder.path()});
  frames(worker);
  library.thumbnail(0);
  library.mark_broken(0, "0.png: no");
  frames(worker);
  CHECK(library.thumbnail(0).state == State::broken);
  CHECK(library.thumbnail(0).error == "0.png: no");
}

TEST_CASE("a library may end while its thumbnails are made") {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 20; ++i) write_png(folder / (std::to_string(i) + ".png"), picture(300, 300, 1));
  Worker worker;
  {
    PictureLibrary library(worker);
    library.open({folder.path()});
    frames(worker);
    for (size_t i = 0; i < 20; ++i) library.thumbnail(i);
  }
  frames(worker);
  CHECK_FALSE(worker.take_error());
}

}  // namespace vitrine::desktop
