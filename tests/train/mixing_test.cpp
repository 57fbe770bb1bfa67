#include "train/recipes/mixing.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <set>

#include "runtime/util/portable_math.h"
#include "train/recipes/random_draws.h"

namespace vitrine {
namespace {

constexpr PictureSides sides{32, 48};

std::vector<double> betas(double shape, int count) {
  const RandomStream stream = stream_for(5, RandomUse::mixing, 1);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    UniformDraws draws(stream, static_cast<uint64_t>(i));
    values.push_back(beta_draw(shape, draws));
  }
  return values;
}

TEST_CASE("portable functions are the math library's to the last digits") {
  for (const double x : {1e-300, 1e-9, 0.3, 0.9999, 1.0, 1.4142, 2.0, 17.0, 1e9, 1e300}) {
    INFO(x);
    CHECK(std::abs(portable_log(x) - std::log(x)) <= 1e-15 * std::max(1.0, std::abs(std::log(x))));
  }
  for (const double x : {-700.0, -20.5, -1.0, -1e-9, 0.0, 0.34, 0.35, 1.0, 30.25, 700.0}) {
    INFO(x);
    CHECK(std::abs(portable_exp(x) / std::exp(x) - 1) <= 2e-15);
  }
  CHECK(portable_exp(-1000) == 0);
  CHECK(std::isinf(portable_exp(1000)));
}

TEST_CASE("beta draws have the distribution's mean, variance and fourth moment") {
  for (const double shape : {0.1, 0.2, 0.8, 1.0, 2.0, 30.0}) {
    INFO("shape " << shape);
    constexpr int count = 40000;
    double sum = 0, squares = 0, fourth = 0;
    for (const double value : betas(shape, count)) {
      REQUIRE((value >= 0 && value <= 1));
      const double off = value - 0.5;
      sum += off;
      squares += off * off;
      fourth += off * off * off * off;
    }
    const double variance = 1 / (4 * (2 * shape + 1));
    const double fourth_moment = 3 * variance * variance * (2 * shape + 1) / (2 * shape + 3);
    CHECK(std::abs(sum / count) < 4 * std::sqrt(variance / count));
    CHECK(std::abs(squares / count - variance) <
          4 * std::sqrt((fourth_moment - variance * variance) / count));
    // The eighth moment is below a 16th of the fourth.
    CHECK(std::abs(fourth / count - fourth_moment) < 4 * std::sqrt(fourth_moment / 16 / count));
  }
}

TEST_CASE("a batch, a pair and a sample draw for themselves, and partners stay in the batch") {
  Mixup mixup{.mixup_alpha = 0.8, .cutmix_alpha = 1};
  const auto shares = [&](uint64_t samples) {
    std::set<double> found;
    const std::vector<Mix> mixes = draw_mixing(mixup, 3, 17, samples, sides);
    REQUIRE(mixes.size() == samples);
    for (uint64_t i = 0; i < samples; ++i) {
      CHECK(mixes[i].partner == samples - 1 - i);
      found.insert(mixes[i].share);
    }
    return found.size();
  };
  CHECK(shares(8) == 1);
  mixup.mode = MixMode::pair;
  CHECK(shares(8) == 4);
  mixup.mode = MixMode::elem;
  CHECK(shares(8) == 8);
  // A last batch of an odd number of samples: the one in the middle stays as it is.
  const std::vector<Mix> odd = draw_mixing(mixup, 3, 18, 5, sides);
  CHECK(odd[2] == Mix{.partner = 2});
  CHECK(draw_mixing(mixup, 3, 18, 1, sides)[0] == Mix{});
  CHECK(draw_mixing(mixup, 3, 17, 8, sides) == draw_mixing(mixup, 3, 17, 8, sides));
  CHECK(draw_mixing(mixup, 3, 17, 8, sides) != draw_mixing(mixup, 3, 18, 8, sides));
  CHECK(draw_mixing(mixup, 3, 17, 8, sides) != draw_mixing(mixup, 4, 17, 8, sides));
}

TEST_CASE("cutmix's share is what its box leaves") {
  for (const bool minmax : {false, true}) {
    Mixup mixup{.cutmix_alpha = 1, .mode = MixMode::elem};
    if (minmax) mixup.cutmix_minmax = {0.25, 0.75};
    double rows = 0;
    for (uint64_t pass = 0; pass < 50; ++pass) {
      for (const Mix& mix : draw_mixing(mixup, 9, pass, 16, sides)) {
        CHECK(mix.cuts);
        CHECK((mix.box.top <= mix.box.bottom && mix.box.bottom <= sides.height));
        CHECK((mix.box.left <= mix.box.right && mix.box.right <= sides.width));
        CHECK(mix.share == 1 - static_cast<double>(mix.box.area()) / (32 * 48));
        const uint32_t height = mix.box.bottom - mix.box.top, width = mix.box.right - mix.box.left;
        rows += height;
        if (minmax) CHECK((height >= 8 && height < 24 && width >= 12 && width < 36));
      }
    }
    CHECK((rows / 800 > 8 && rows / 800 < 24));
  }
}

TEST_CASE("mixing is as likely as its probabilities say") {
  const Mixup mixup{.mixup_alpha = 1, .cutmix_alpha = 1, .prob = 0.6, .switch_prob = 0.25};
  constexpr int passes = 4000;
  int mixed = 0, cut = 0;
  for (uint64_t pass = 0; pass < passes; ++pass) {
    const Mix mix = draw_mixing(mixup, 1, pass, 2, sides)[0];
    mixed += mix.share != 1 || mix.cuts;
    cut += mix.cuts;
  }
  CHECK(std::abs(mixed - 0.6 * passes) < 4 * std::sqrt(0.24 * passes));
  CHECK(std::abs(cut - 0.15 * passes) < 4 * std::sqrt(0.1275 * passes));
}

TEST_CASE("boxes that are erased have the areas and shapes that were asked for") {
  const RandomErasing erasing{.probability = 0.5, .min_area = 0.1, .max_area = 0.2, .min_aspect = 0.5};
  int erased = 0;
  constexpr int samples = 4000;
  for (uint64_t i = 0; i < samples; ++i) {
    const std::vector<Box> boxes = draw_erasing(erasing, 2, 7, i, sides);
    REQUIRE(boxes.size() <= 1);
    if (boxes.empty()) continue;
    ++erased;
    const Box& box = boxes[0];
    CHECK((box.bottom <= sides.height && box.right <= sides.width));
    const double area = static_cast<double>(box.area()) / (32 * 48);
    const double aspect = static_cast<double>(box.bottom - box.top) / (box.right - box.left);
    CHECK((area > 0.09 && area < 0.22));  // sides are whole numbers
    CHECK((aspect > 0.44 && aspect < 2.3));
  }
  CHECK(std::abs(erased - 0.5 * samples) < 4 * std::sqrt(0.25 * samples));
  const RandomErasing several{.probability = 1, .min_count = 2, .max_count = 4};
  std::set<size_t> counts;
  for (uint64_t i = 0; i < 100; ++i) counts.insert(draw_erasing(several, 2, 7, i, sides).size());
  CHECK(counts == std::set<size_t>{2, 3, 4});
  CHECK(draw_erasing(several, 2, 7, 1, sides) == draw_erasing(several, 2, 7, 1, sides));
  CHECK(draw_erasing(several, 2, 7, 1, sides) != draw_erasing(several, 2, 8, 1, sides));
}

}  // namespace
}  // namespace vitrine
