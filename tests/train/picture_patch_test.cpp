// Photographs of which only the cut rectangle is decoded make the batches that whole ones make.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>

#include "model/pictures/picture_input.h"
#include "tests/support/temporary_folder.h"
#include "train/data/batch_loader.h"
#include "train/data/selection.h"

namespace vitrine::test {
namespace {

std::filesystem::path picture_named(const std::string& name) {
  return std::filesystem::path(VITRINE_TEST_DATA) / "images/pictures" / name;
}

// Of all kinds that decoders treat differently: color at half the size, in several passes, grey, turned.
void write_photographs(const TemporaryFolder& folder) {
  for (const std::string name :
       {"jpeg_403x301.jpg", "jpeg_1023x767.jpg", "jpeg_420.jpg", "jpeg_422.jpg", "jpeg_progressive.jpg",
        "jpeg_grey.jpg", "jpeg_cmyk.jpg", "jpeg_exif_6.jpg", "png_977x641.png"}) {
    const std::filesystem::path to = folder / "train" / name.substr(0, 6) / name;
    std::filesystem::create_directories(to.parent_path());
    std::filesystem::copy_file(picture_named(name), to);
  }
  std::filesystem::create_directories(folder / "val");
}

std::vector<std::vector<uint32_t>> batches(const Dataset& dataset, bool on_host, uint32_t epochs) {
  LoaderOptions options{.batch_size = 3, .pictures = true, .end_epoch = epochs, .on_host = on_host};
  options.augmentation.resized_crop = RandomResizedCrop{};
  options.augmentation.flip = true;
  BatchLoader loader(dataset, options);
  std::vector<std::vector<uint32_t>> seen;
  std::vector<uint32_t> labels(3);
  const auto take = [&](const PicturePart& part) {
    if (on_host) {
      std::vector<uint32_t>& pixels = seen.emplace_back();
      for (size_t i = 0; i < part.picture->pixels.size(); i += 4) {
        const uint8_t* from = part.picture->pixels.data() + i;
        pixels.push_back(from[0] | from[1] << 8 | from[2] << 16 | uint32_t{from[3]} << 24);
      }
    } else {
      seen.push_back(resized_on_host(*part.picture, part.prepared));
    }
  };
  while (loader.next(take, labels)) seen.push_back(labels);
  return seen;
}

}  // namespace

TEST_CASE("photographs decoded in part make the same batches") {
  const TemporaryFolder folder;
  write_photographs(folder);
  const DatasetOptions whole{.shape = {3, 32, 32}, .classes = 0, .preprocess = {}};
  DatasetOptions none = whole, some = whole;
  none.kept_bytes = 0;
  some.kept_bytes = 600'000;  // the first few
  const auto kept = open_dataset(folder.path(), Split::train, whole);
  const auto expected = batches(*kept, true, 3);
  REQUIRE(expected.size() == 3 * (9 + 3));
  for (const bool on_host : {true, false}) {
    for (const DatasetOptions& options : {whole, some, none}) {
      const auto dataset = open_dataset(folder.path(), Split::train, options);
      CHECK(batches(*dataset, on_host, 3) == expected);
    }
  }
  // Of some of them alone.
  const auto dataset = open_dataset(folder.path(), Split::train, none);
  CHECK(batches(Selection(*dataset, {4, 1, 8}), true, 2) == batches(Selection(*kept, {4, 1, 8}), true, 2));
}

TEST_CASE("a patch is smaller than its photograph, and kept ones are whole") {
  const TemporaryFolder folder;
  write_photographs(folder);
  DatasetOptions options{.shape = {3, 32, 32}, .classes = 0, .preprocess = {}, .kept_bytes = 0};
  const auto choose = [](uint32_t height, uint32_t width) {
    CHECK(height == 301);
    CHECK(width == 403);
    return ImageArea{200, 300, 10, 10};
  };
  const auto number_of = [](const Dataset& dataset) {
    uint64_t i = 0;
    while (dataset.file(i).filename() != "jpeg_403x301.jpg") ++i;
    return i;
  };
  const auto unkept = open_dataset(folder.path(), Split::train, options);
  const PicturePatch patch = unkept->patch(number_of(*unkept), choose);
  CHECK(patch.picture->height < 60);
  CHECK(patch.top > 150);
  CHECK(patch.left > 250);
  options.kept_bytes = 1 << 30;
  const auto keeping = open_dataset(folder.path(), Split::train, options);
  const PicturePatch all = keeping->patch(number_of(*keeping), choose);
  CHECK(all.picture->width == 403);
  CHECK(all.top == 0);
  CHECK(keeping->patch(number_of(*keeping), choose).picture == all.picture);
}

}  // namespace vitrine::test
