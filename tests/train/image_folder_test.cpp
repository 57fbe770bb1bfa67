#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "images/image.h"
#include "images/png_writer.h"
#include "model/pictures/picture_input.h"
#include "runtime/util/error.h"
#include "tests/train/sample_files.h"

namespace vitrine::test {
namespace {

// A picture of its own for every number.
void write_picture(const TemporaryFolder& folder, const std::string& name, uint64_t number,
                   uint32_t height = 9, uint32_t width = 13) {
  std::filesystem::create_directories((folder / name).parent_path());
  std::vector<uint8_t> bytes(size_t{height} * width * 3);
  for (size_t p = 0; p < bytes.size(); ++p) bytes[p] = pattern(number, p);
  write_png(folder / name, width, height, 3, bytes);
}

void write_pictures(const TemporaryFolder& folder) {
  write_picture(folder, "train/cat/b.png", 1);
  write_picture(folder, "train/cat/a.png", 0);
  write_picture(folder, "train/ant/z.png", 2, 40, 21);
  write_picture(folder, "train/dog/x.png", 3, 4, 4);
  folder.file("train/dog/notes.txt", "no picture");
  folder.file("train/readme", "no class");
  folder.file("train/.hidden/x.png", "no class either");
  write_picture(folder, "val/dog/v.png", 4);
}

const DatasetOptions options{.shape = {3, 8, 8}, .classes = 0, .preprocess = {}};

}  // namespace

TEST_CASE("image folders are read in the order of their names, resized and cropped in the middle") {
  const TemporaryFolder folder;
  write_pictures(folder);
  const auto train = open_dataset(folder.path(), Split::train, options);
  CHECK(train->class_names() == std::vector<std::string>{"ant", "cat", "dog"});
  CHECK(train->classes() == 3);
  REQUIRE(train->count() == 4);
  const uint32_t labels[] = {0, 1, 1, 2};
  for (uint32_t i = 0; i < 4; ++i) CHECK(train->label(i) == labels[i]);
  // 9 x 13 covers 8 x 8 as 8 x 12, of which the middle remains.
  Preprocess preprocess;
  preprocess.resize = ResizeRule::cover;
  preprocess.resize_height = preprocess.resize_width = preprocess.crop_height = preprocess.crop_width = 8;
  preprocess.crop = CropRule::half_even;
  std::vector<uint32_t> packed(9 * 13);
  for (size_t p = 0; p < packed.size(); ++p) {
    for (size_t c = 0; c < 3; ++c) packed[p] |= uint32_t{pattern(0, 3 * p + c)} << (8 * c);
  }
  const std::vector<uint32_t> resized =
      resized_on_host(picture_of(packed, 13), prepare_picture(preprocess, 9, 13, "a picture"));
  const std::vector<uint8_t> pixels = pixels_of(*train, 1);
  for (size_t p = 0; p < 64; ++p) {
    for (size_t c = 0; c < 3; ++c) CHECK(pixels[c * 64 + p] == (resized[p] >> (8 * c) & 255));
  }
  CHECK(pixels_of(*train, 1) == pixels);  // from memory the second time

  // The training set decides the numbers, though there are dogs only.
  const auto test = open_dataset(folder.path(), Split::test, options);
  REQUIRE(test->count() == 1);
  CHECK(test->label(0) == 2);
  CHECK(test->class_names().size() == 3);
}

TEST_CASE("what is kept in memory and who reads it changes nothing") {
  const TemporaryFolder folder;
  write_pictures(folder);
  DatasetOptions none = options, one = options;
  none.kept_bytes = 0;
  one.kept_bytes = 500;  // one picture of 9 x 13 has 468
  const auto first = open_dataset(folder.path(), Split::train, none);
  for (const DatasetOptions& kept : {none, one, options}) {
    const auto dataset = open_dataset(folder.path(), Split::train, kept);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t k = 0; k < 40; ++k)
          wrong[t] += pixels_of(*dataset, k % 4) != pixels_of(*first, k % 4) ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4));
  }
}

TEST_CASE("a model of one channel is shown grey pictures") {
  const TemporaryFolder folder;
  write_picture(folder, "train/a/x.png", 5, 8, 8);
  DatasetOptions grey = options;
  grey.shape.channels = 1;
  const auto dataset = open_dataset(folder.path(), Split::train, grey);
  CHECK(pixels_of(*dataset, 0) == grey_from_rgb(decode_image(folder / "train/a/x.png")));
}

TEST_CASE("a class whose name isn't UTF-8 is refused") {
  const TemporaryFolder folder;
  write_picture(folder, "train/" + name_beyond_unicode("\xe9t\xe9") + "/x.png", 1);
  CHECK(refusal_of(folder, Split::train, options) ==
        "/train: found the class \"\\xe9t\\xe9\", expected a name in UTF-8");
}

TEST_CASE("image folders that are no data set are refused with what was found and expected") {
  const TemporaryFolder folder;
  write_picture(folder, "cat/x.png", 1);
  CHECK(refusal_of(folder, Split::train, options)
            .find("or folders train and test with a folder of pictures for each class") != std::string::npos);
  write_picture(folder, "train/cat/x.png", 1);
  CHECK(refusal_of(folder, Split::train, options) == "opened");
  CHECK(refusal_of(folder, Split::test, options) ==
        ": found a folder train but neither test nor val, expected one of them");
  write_picture(folder, "test/cow/x.png", 1);
  CHECK(refusal_of(folder, Split::test, options) ==
        "/test: found the class \"cow\", expected one of the 1 classes of the training set");
  std::filesystem::remove_all(folder / "train");
  CHECK(refusal_of(folder, Split::train, options) ==
        ": found a folder test or val but no folder train, expected both");
  CHECK(refusal_of(folder, Split::test, options) == "opened");
  write_picture(folder, "train/ant/x.png", 1);
  write_picture(folder, "train/bee/x.png", 1);
  DatasetOptions one_class = options;
  one_class.classes = 1;
  CHECK(refusal_of(folder, Split::train, one_class) ==
        "/train: found the class \"bee\", expected one of the 1 classes of the model");
  std::filesystem::remove(folder / "train/bee/x.png");
  CHECK(refusal_of(folder, Split::train, options) ==
        "the folder " + (folder / "train/bee").string() +
            " holds no pictures (files named *.jpg, *.jpeg, *.png or *.webp)");
  std::filesystem::remove_all(folder / "train");
  std::filesystem::create_directory(folder / "train");
  CHECK(refusal_of(folder, Split::train, options) ==
        "/train: found no folders, expected one with pictures for each class");
  CHECK_THROWS_AS(open_dataset(folder.path(), Split::train), Error);  // no size to give them
  DatasetOptions other_size = options;
  other_size.preprocess = profile_named("timm", 16, 16);
  CHECK_THROWS_AS(open_dataset(folder.path(), Split::train, other_size), Error);
  try {
    open_dataset(folder / "nowhere", Split::train);
    FAIL("opened");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
  }
}

TEST_CASE("a picture that can't be decoded is an error of the data set that names it") {
  const TemporaryFolder folder;
  write_picture(folder, "train/cat/x.png", 1);
  const std::string good = read_whole_file(folder / "train/cat/x.png");
  folder.file("train/cat/x.png", good.substr(0, good.size() / 2));
  const auto dataset = open_dataset(folder.path(), Split::train, options);
  for (int again = 0; again < 2; ++again) {
    try {
      pixels_of(*dataset, 0);
      FAIL("decoded");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      CHECK(std::string(error.what()).starts_with((folder / "train/cat/x.png").string() + ": "));
    }
  }
}

}  // namespace vitrine::test
