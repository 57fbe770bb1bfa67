#include "train/data/batch_loader.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

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
  std::vector<float> images;
  std::vector<uint32_t> labels;
};

std::vector<Taken> take_all(const Dataset& dataset, const LoaderOptions& options) {
  BatchLoader loader(dataset, options);
  std::vector<Taken> all;
  while (true) {
    Taken taken;
    taken.images.assign(options.batch_size * dataset.shape().bytes(), std::nanf(""));
    taken.labels.assign(options.batch_size, 12345);
    const std::optional<Batch> batch = loader.next(taken.images, taken.labels);
    if (!batch) return all;
    taken.batch = *batch;
    all.push_back(std::move(taken));
  }
}

bool same(const Taken& a, const Taken& b) {
  return a.batch.epoch == b.batch.epoch && a.batch.index == b.batch.index && a.batch.size == b.batch.size &&
         a.labels == b.labels && a.images.size() == b.images.size() &&
         std::memcmp(a.images.data(), b.images.data(), a.images.size() * sizeof(float)) == 0;
}

bool same(const std::vector<Taken>& a, const std::vector<Taken>& b) {
  return std::ranges::equal(a, b, [](const Taken& x, const Taken& y) { return same(x, y); });
}

LoaderOptions options_for_patterns() {
  LoaderOptions options;
  options.batch_size = 16;
  options.seed = 11;
  options.values = normalized_values(2, {0.25, 0.5}, {0.5, 0.75});
  options.end_epoch = 3;
  return options;
}

}  // namespace

TEST_CASE("batches hold the samples of the epoch's order, moved and normalized") {
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
        std::vector<float> expected(30, 0.0f);
        uint32_t label = no_label;
        if (row < all[b].batch.size) {
          const uint32_t i = order.samples()[b % 4 * 16 + row];
          std::vector<uint8_t> sample(30), moved(30);
          for (uint64_t p = 0; p < 30; ++p) sample[p] = pattern(i, p);
          place(sample, dataset.shape(), draw_placement(options.augmentation, 11, epoch, i), moved);
          for (size_t p = 0; p < 30; ++p) expected[p] = options.values[p / 15 * 256 + moved[p]];
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
  std::vector<float> images(16 * 30);
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
    std::vector<float> images(16 * 30);
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
  CHECK(refusal([](LoaderOptions& o) { o.values.resize(256); }) ==
        "patterns: found 256 numbers for the bytes, expected 512");
  CHECK(refusal([](LoaderOptions& o) { o.first_batch = 1; }) ==
        "patterns: found a start at batch 1, expected one below 1");
  CHECK(refusal([](LoaderOptions& o) { o.augmentation.crop_padding = 65536; }) ==
        "patterns: found a padding of 65536, expected at most 65535");
  BatchLoader loader(dataset, options_for_patterns());
  std::vector<float> images(16 * 30 - 1);
  std::vector<uint32_t> labels(16);
  CHECK_THROWS_AS(loader.next(images, labels), Error);
}

}  // namespace vitrine::test
