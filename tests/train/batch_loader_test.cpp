#include "train/data/batch_loader.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <chrono>
#include <thread>

#include "model/pictures/picture_input.h"
#include "runtime/util/error.h"
#include "tests/train/sample_files.h"
#include "train/data/epoch_order.h"

namespace vitrine::test {
namespace {

// Pictures of patterns, as many as are wanted, which notes what was read and fails where it is told to.
class Patterns : public Dataset {
 public:
  explicit Patterns(uint32_t count, SampleShape shape = {2, 3, 5}) {
    name_ = "patterns";
    shape_ = shape;
    classes_ = 10;
    for (uint32_t i = 0; i < count; ++i) labels_.push_back(i * 7 % 10);
  }

  void read(uint64_t i, std::span<uint8_t> pixels) const override {
    ++reads;
    // So that threads finish in another order than they began.
    if (uneven) std::this_thread::sleep_for(std::chrono::microseconds(i * 7919 % 300));
    if (std::ranges::find(broken, i) != broken.end())
      throw Error(ErrorCode::bad_file, "file " + std::to_string(i) + " is broken");
    for (uint64_t p = 0; p < pixels.size(); ++p) pixels[p] = pattern(i, p);
  }

  mutable std::atomic<uint64_t> reads = 0;
  bool uneven = false;
  std::vector<uint64_t> broken;
};

struct Taken {
  Batch batch;
  std::vector<uint8_t> images;
  std::vector<uint32_t> labels;
};

std::vector<Taken> take_all(const Dataset& dataset, const LoaderOptions& options) {
  BatchLoader loader(dataset, options);
  std::vector<Taken> all;
  while (true) {
    Taken taken;
    taken.images.assign(options.batch_size * dataset.shape().bytes(), 77);
    taken.labels.assign(options.batch_size, 12345);
    const std::optional<Batch> batch = loader.next(taken.images, taken.labels);
    if (!batch) return all;
    taken.batch = *batch;
    all.push_back(std::move(taken));
  }
}

bool same(const Taken& a, const Taken& b) {
  return a.batch.epoch == b.batch.epoch && a.batch.index == b.batch.index && a.batch.size == b.batch.size &&
         a.labels == b.labels && a.images == b.images;
}

bool same(const std::vector<Taken>& a, const std::vector<Taken>& b) {
  return std::ranges::equal(a, b, [](const Taken& x, const Taken& y) { return same(x, y); });
}

LoaderOptions options_for_patterns() {
  LoaderOptions options;
  options.batch_size = 16;
  options.seed = 11;
  options.end_epoch = 3;
  return options;
}

}  // namespace

TEST_CASE("batches hold the samples of the epoch's order, moved and mirrored") {
  const Patterns dataset(53);
  LoaderOptions options = options_for_patterns();
  const bool cases[][2] = {{false, false}, {true, false}, {true, true}};
  for (const auto& [shuffle, move] : cases) {
    options.shuffle = shuffle;
    options.augmentation = move ? Augmentation{.crop_padding = 1, .flip = true} : Augmentation{};
    const std::vector<Taken> all = take_all(dataset, options);
    REQUIRE(all.size() == 12);
    for (size_t b = 0; b < all.size(); ++b) {
      const auto epoch = static_cast<uint32_t>(b / 4);
      CHECK(all[b].batch.epoch == epoch);
      CHECK(all[b].batch.index == b % 4);
      REQUIRE(all[b].batch.size == (b % 4 == 3 ? 5 : 16));
      const EpochOrder order = shuffle ? EpochOrder(53, 11, epoch) : EpochOrder::as_stored(53);
      for (uint32_t row = 0; row < 16; ++row) {
        std::vector<uint8_t> expected(30);
        uint32_t label = no_label;
        if (row < all[b].batch.size) {
          const uint32_t i = order.samples()[b % 4 * 16 + row];
          std::vector<uint8_t> sample(30);
          for (uint64_t p = 0; p < 30; ++p) sample[p] = pattern(i, p);
          place(sample, dataset.shape(), draw_placement(options.augmentation, 11, epoch, i), expected);
          label = i * 7 % 10;
        }
        CHECK(all[b].labels[row] == label);
        CHECK(std::equal(expected.begin(), expected.end(), all[b].images.begin() + row * 30));
      }
    }
  }
}

TEST_CASE("the number of threads and of batches ahead changes nothing") {
  Patterns dataset(101);
  dataset.uneven = true;
  LoaderOptions options = options_for_patterns();
  options.augmentation = {.crop_padding = 2, .flip = true};
  options.threads = 1;
  options.batches_ahead = 1;
  const std::vector<Taken> alone = take_all(dataset, options);
  for (const unsigned threads : {2u, 3u, 8u}) {
    for (const uint32_t ahead : {0u, 1u, 5u, 100u}) {
      options.threads = threads;
      options.batches_ahead = ahead;
      CAPTURE(threads, ahead);
      CHECK(same(take_all(dataset, options), alone));
    }
  }
}

TEST_CASE("training that is taken up anywhere goes on with the same batches") {
  const Patterns dataset(53);
  LoaderOptions options = options_for_patterns();
  for (const bool drop_last : {false, true}) {
    options.drop_last = drop_last;
    options.first_epoch = 0;
    options.first_batch = 0;
    const std::vector<Taken> all = take_all(dataset, options);
    const size_t per_epoch = drop_last ? 3 : 4;
    REQUIRE(all.size() == 3 * per_epoch);
    for (size_t b = 0; b < all.size(); ++b) {
      options.first_epoch = static_cast<uint32_t>(b / per_epoch);
      options.first_batch = b % per_epoch;
      CAPTURE(b, drop_last);
      CHECK(same(take_all(dataset, options), {all.begin() + static_cast<ptrdiff_t>(b), all.end()}));
    }
  }
  options.first_epoch = 3;
  options.first_batch = 0;
  CHECK(take_all(dataset, options).empty());
}

TEST_CASE("no more batches are made ahead than were asked for") {
  const Patterns dataset(1000);
  LoaderOptions options = options_for_patterns();
  options.batches_ahead = 3;
  BatchLoader loader(dataset, options);
  std::vector<uint8_t> images(16 * 30);
  std::vector<uint32_t> labels(16);
  const auto settles_at = [&](uint64_t reads) {
    for (int i = 0; i < 2000 && dataset.reads < reads; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return dataset.reads == reads;
  };
  CHECK(settles_at(48));
  CHECK(loader.next(images, labels));
  CHECK(settles_at(64));
}

TEST_CASE("a sample that can't be read is an error where its batch would be, whichever thread found it") {
  Patterns dataset(64);
  dataset.uneven = true;
  dataset.broken = {37, 41, 60};
  LoaderOptions options = options_for_patterns();
  options.shuffle = false;
  for (const unsigned threads : {1u, 4u}) {
    options.threads = threads;
    BatchLoader loader(dataset, options);
    std::vector<uint8_t> images(16 * 30);
    std::vector<uint32_t> labels(16);
    CHECK(loader.next(images, labels));
    CHECK(loader.next(images, labels));
    for (int again = 0; again < 2; ++again) {
      std::string message;
      try {
        loader.next(images, labels);
      } catch (const Error& error) {
        message = error.what();
        CHECK(error.code() == ErrorCode::bad_file);
      }
      CHECK(message == "file 37 is broken");
    }
  }
}

namespace {

struct TakenPictures {
  Batch batch;
  std::vector<PicturePart> parts;
  std::vector<uint32_t> labels;
};

std::vector<TakenPictures> take_pictures(const Dataset& dataset, const LoaderOptions& options) {
  BatchLoader loader(dataset, options);
  std::vector<TakenPictures> all;
  while (true) {
    TakenPictures taken;
    taken.labels.assign(options.batch_size, 12345);
    const std::optional<Batch> batch =
        loader.next([&](PicturePart part) { taken.parts.push_back(std::move(part)); }, taken.labels);
    if (!batch) return all;
    taken.batch = *batch;
    all.push_back(std::move(taken));
  }
}

std::vector<uint8_t> seen(const PicturePart& part) {
  std::vector<uint8_t> planes;
  const std::vector<uint32_t> result = resized_on_host(*part.picture, part.prepared);
  for (uint32_t c = 0; c < 2; ++c) {
    for (const uint32_t pixel : result) planes.push_back(static_cast<uint8_t>(pixel >> (16 * c)));
  }
  return planes;
}

}  // namespace

TEST_CASE("samples taken as pictures are the same, moved and mirrored in the same way") {
  // The first and the third byte of a pixel are one plane's where there are three.
  Patterns dataset(53, {3, 3, 5});
  dataset.uneven = true;
  LoaderOptions options = options_for_patterns();
  options.augmentation = {.crop_padding = 1, .flip = true};
  const std::vector<Taken> bytes = take_all(dataset, options);
  options.pictures = true;
  // A device that takes less than a sample's pixels gets them from here.
  for (const uint64_t pixels : {uint64_t{1} << 20, uint64_t{14}}) {
    for (const uint64_t ahead : {uint64_t{0}, uint64_t{200}, uint64_t{1} << 20}) {
      options.largest.pixels = pixels;
      options.bytes_ahead = ahead;
      const std::vector<TakenPictures> pictures = take_pictures(dataset, options);
      REQUIRE(pictures.size() == bytes.size());
      for (size_t b = 0; b < bytes.size(); ++b) {
        CHECK(pictures[b].labels == bytes[b].labels);
        REQUIRE(pictures[b].parts.size() == bytes[b].batch.size);
        for (size_t row = 0; row < pictures[b].parts.size(); ++row) {
          const std::vector<uint8_t> found = seen(pictures[b].parts[row]);
          const uint8_t* expected = bytes[b].images.data() + row * 45;
          CHECK(std::equal(found.begin(), found.begin() + 15, expected));
          CHECK(std::equal(found.begin() + 15, found.end(), expected + 30));
        }
      }
    }
  }
}

TEST_CASE("a picture that can't be read is an error in its turn, for whoever asks again too") {
  Patterns dataset(64);
  dataset.broken = {37, 41};
  LoaderOptions options = options_for_patterns();
  options.pictures = true;
  options.shuffle = false;
  BatchLoader loader(dataset, options);
  std::vector<uint32_t> labels(16);
  uint64_t taken = 0;
  const auto next = [&] { return loader.next([&](const PicturePart&) { ++taken; }, labels); };
  CHECK(next());
  CHECK(next());
  for (int again = 0; again < 2; ++again) {
    CHECK_THROWS_WITH(next(), "file 37 is broken");
    CHECK(taken == 37);
  }
}

TEST_CASE("a loader that nobody takes from ends at once") {
  Patterns dataset(5000);
  dataset.uneven = true;
  for (int i = 0; i < 20; ++i) BatchLoader(dataset, options_for_patterns());
  CHECK(dataset.reads < 20 * 16 * 4 + 1);
}

TEST_CASE("options of a loader that make no sense are refused") {
  const Patterns dataset(10);
  const auto refusal = [&](const auto& change) -> std::string {
    LoaderOptions options = options_for_patterns();
    change(options);
    try {
      BatchLoader(dataset, options);
    } catch (const Error& error) {
      return error.code() == ErrorCode::usage ? error.what() : "another error";
    }
    return "accepted";
  };
  CHECK(refusal([](LoaderOptions&) {}) == "accepted");
  CHECK(refusal([](LoaderOptions& o) { o.batch_size = 0; }) ==
        "patterns: found a batch size of 0, expected at least 1");
  CHECK(refusal([](LoaderOptions& o) { o.drop_last = true; }) ==
        "patterns: found 10 samples, which make no whole batch, expected at least 16");
  CHECK(refusal([](LoaderOptions& o) { o.first_batch = 1; }) ==
        "patterns: found a start at batch 1, expected one below 1");
  CHECK(refusal([](LoaderOptions& o) { o.augmentation.crop_padding = 65536; }) ==
        "patterns: found a padding of 65536, expected at most 65535");
  BatchLoader loader(dataset, options_for_patterns());
  std::vector<uint8_t> images(16 * 30 - 1);
  std::vector<uint32_t> labels(16);
  CHECK_THROWS_AS(loader.next(images, labels), Error);
}

}  // namespace vitrine::test
