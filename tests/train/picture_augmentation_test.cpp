#include "train/data/picture_augmentation.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "model/files/json_object.h"
#include "runtime/ops/pictures/reference_operation.h"
#include "runtime/util/error.h"
#include "tests/support/augmentation_cases.h"
#include "train/data/augmentation_config.h"
#include "train/train_config.h"

namespace vitrine::test {
namespace {

using nlohmann::json;
using Kind = PictureOperationKind;

PictureAugmentation read(const std::string& text) {
  const json data = json::parse(text);
  return read_picture_augmentation(JsonObject(data, "data"));
}

TEST_CASE("pictures become timm's and torchvision's for the same numbers, to the bit") {
  const std::vector<AugmentationCase> cases = augmentation_cases();
  REQUIRE(cases.size() >= 200);
  std::map<Kind, int> seen;
  int grey_ones = 0;
  for (const AugmentationCase& one : cases) {
    INFO(one.label);
    CHECK(one.numbers_left == 0);
    CHECK(one.operations.size() <= one.augmentation.operations());
    std::vector<uint32_t> pixels = one.pixels;
    for (const PictureOperation& operation : one.operations) {
      pixels = reference::operation_result(operation, pixels, one.width, one.height);
      ++seen[operation.kind];
    }
    grey_ones += one.grey;
    CHECK(one.hash_of(pixels) == one.expected);
  }
  // All but what is nothing.
  CHECK(seen.size() == VITRINE_OPERATION_KINDS - 1);
  for (const auto& [kind, count] : seen) {
    INFO("kind " << static_cast<int>(kind));
    CHECK(count >= 5);
  }
  CHECK(grey_ones >= 20);
}

TEST_CASE("what is drawn for a picture depends on seed, epoch and sample alone") {
  PictureAugmentation augmentation;
  augmentation.rand_augment = rand_augment_named("rand-m9-mstd0.5-inc1-n3", "spec", ErrorCode::usage);
  augmentation.color_jitter = color_jitter_of(0.4);
  const auto drawn = [&](uint64_t seed, uint32_t epoch, uint32_t sample) {
    return draw_picture_operations(augmentation, 32, 24, 0xff808080, seed, epoch, sample);
  };
  CHECK(drawn(1, 2, 3) == drawn(1, 2, 3));
  CHECK(drawn(1, 2, 3) != drawn(2, 2, 3));
  CHECK(drawn(1, 2, 3) != drawn(1, 3, 3));
  CHECK(drawn(1, 2, 3) != drawn(1, 2, 4));
  CHECK(augmentation.operations() == 6);
  // Of three operations, each with a probability of one half, as many as there should be; the jitter's
  // always.
  uint64_t count = 0;
  constexpr uint32_t samples = 4000;
  for (uint32_t i = 0; i < samples; ++i) count += drawn(7, 0, i).size();
  CHECK(std::abs(static_cast<double>(count) / samples - 4.5) < 5 * std::sqrt(0.75 / samples));
}

TEST_CASE("each of TrivialAugment's operations is as likely, and timm's weights are kept") {
  std::map<Kind, int> counts;
  constexpr uint32_t samples = 14000;
  for (uint32_t i = 0; i < samples; ++i) {
    const auto drawn = draw_picture_operations({.trivial_augment = true}, 32, 32, 0, 5, 1, i);
    ++counts[drawn.empty() ? Kind::none : drawn[0].kind];
  }
  // Five of them move pixels; of the rotations those by no angle, one bin of 31, are nothing.
  CHECK(std::abs(counts[Kind::nearest] - 5000) < 250);
  for (const Kind kind : {Kind::none, Kind::brightness, Kind::color, Kind::contrast, Kind::sharpness,
                          Kind::posterize, Kind::solarize, Kind::autocontrast, Kind::equalize})
    CHECK(std::abs(counts[kind] - 1000) < 160);

  PictureAugmentation weighted;
  weighted.rand_augment = rand_augment_named("rand-m9-n1-p1-tweights", "spec", ErrorCode::usage);
  int moves = 0;
  for (uint32_t i = 0; i < samples; ++i) {
    const auto drawn = draw_picture_operations(weighted, 32, 32, 0, 5, 1, i);
    moves += drawn.at(0).kind == Kind::bilinear || drawn.at(0).kind == Kind::bicubic;
  }
  CHECK(std::abs(moves / static_cast<double>(samples) - 9 / 10.05) < 0.015);
}

TEST_CASE("a RandAugment is read by timm's name or field by field, and written so that it is read again") {
  const RandAugment rand = *read(R"({"rand_augment": "rand-m9-mstd0.5-inc1"})").rand_augment;
  CHECK(rand == RandAugment{.magnitude = 9, .magnitude_std = 0.5, .increasing = true});
  CHECK(*read(R"({"rand_augment": "rand"})").rand_augment == RandAugment{});
  CHECK(*read(R"({"rand_augment": "rand-n3-m20-mmax30-p0.25-tweights"})").rand_augment ==
        RandAugment{.magnitude = 20, .num_layers = 3, .prob = 0.25, .magnitude_max = 30, .weighted = true});
  CHECK(*read(R"({"rand_augment": {"magnitude": 4.5, "num_layers": 1, "interpolation": "bicubic"}})")
             .rand_augment ==
        RandAugment{.magnitude = 4.5, .num_layers = 1, .interpolation = MoveFilter::bicubic});
  for (const char* text :
       {R"({"rand_augment": "rand-m9-n3-mstd101-tweights", "color_jitter": 0.4})",
        R"({"trivial_augment": true, "color_jitter": {"hue": 0.1, "brightness": [0.5, 3]}})",
        R"({"color_jitter": [0.4, 0.3, 0.2, 0.1]})", "{}"}) {
    const PictureAugmentation augmentation = read(text);
    nlohmann::ordered_json written = nlohmann::ordered_json::object();
    write_picture_augmentation(augmentation, written);
    CHECK(read(written.dump()) == augmentation);
  }
  const ColorJitter jitter = *read(R"({"color_jitter": [0.4, 1.5, 0]})").color_jitter;
  CHECK(jitter.brightness == JitterRange{0.6, 1.4});
  CHECK(jitter.contrast == JitterRange{0, 2.5});
  CHECK(jitter.operations() == 2);
  CHECK(!read(R"({"color_jitter": 0})").on());
}

TEST_CASE("an augmentation that makes no sense is refused by the name of its field") {
  const auto refused = [](const std::string& data, const std::string& says) {
    INFO(data);
    const json config = {{"model",
                          {{"image_height", 8},
                           {"image_width", 8},
                           {"patch_height", 4},
                           {"patch_width", 4},
                           {"dim", 8},
                           {"depth", 1},
                           {"heads", 2},
                           {"classes", 2}}},
                         {"data", json::parse(data)}};
    CHECK_THROWS_MATCHES(train_config_of(config, "c.json"), Error,
                         Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("c.json") &&
                                                         Catch::Matchers::ContainsSubstring(says)));
  };
  refused(R"({"rand_augment": "rand-m11"})", "data.rand_augment.magnitude is 11");
  refused(R"({"rand_augment": "rand-m9-mmax31"})", "magnitude_max is 31");
  refused(R"({"rand_augment": "rand-n0"})", "num_layers is 0");
  refused(R"({"rand_augment": "rand-n17"})", "num_layers is 17");
  refused(R"({"rand_augment": "rand-p1.5"})", "prob is 1.5");
  refused(R"({"rand_augment": "rand-mstdinf"})", "mstdinf");
  refused(R"({"rand_augment": "rand-m9.5"})", "m9.5");
  refused(R"({"rand_augment": "rand-t3a"})", "t3a");
  refused(R"({"rand_augment": "rand-m9-"})", "expected m, n, p");
  refused(R"({"rand_augment": "augmix-m3"})", "augmix-m3");
  refused(R"({"rand_augment": "v0"})", "rand-m9-mstd0.5-inc1");
  refused(R"({"rand_augment": {"ops": 3}})", "\"ops\" is not known");
  refused(R"({"rand_augment": {"interpolation": "lanczos"}})", "lanczos");
  refused(R"({"rand_augment": {"magnitude_std": -1}})", "magnitude_std is -1");
  refused(R"({"rand_augment": 9})", "rand_augment");
  refused(R"({"rand_augment": "rand", "trivial_augment": true})", "trivial_augment is true");
  refused(R"({"trivial_augment": 1})", "trivial_augment");
  refused(R"({"color_jitter": -0.1})", "color_jitter");
  refused(R"({"color_jitter": [1, 2]})", "color_jitter");
  refused(R"({"color_jitter": {"hue": 0.6}})", "color_jitter.hue is -0.6");
  refused(R"({"color_jitter": {"contrast": [2, 1]}})", "color_jitter.contrast is 2");
  refused(R"({"color_jitter": {"gamma": 1}})", "gamma");
  refused(R"({"random_augment": "rand"})", "random_augment");
}

TEST_CASE("moves leave the mean where nothing is") {
  CHECK(fill_of_mean({0.485, 0.456, 0.406}) == 0xff68747c);
  CHECK(fill_of_mean({0.5}) == 0xff808080);  // 127.5 to the even 128
  CHECK(fill_of_mean({1.7, -1, 0}) == 0xff0000ff);
  CHECK(fill_of_mean({}) == 0xff000000);
}

}  // namespace
}  // namespace vitrine::test
