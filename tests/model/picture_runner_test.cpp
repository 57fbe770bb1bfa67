// Pictures through preprocessing and model in one submission.
#include "model/run/picture_runner.h"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/files/model_pictures.h"
#include "model/pictures/host_resample.h"
#include "model/run/runner.h"
#include "runtime/ops/pictures/reference_resample.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/constants.h"
#include "tests/support/noise_picture.h"
#include "tests/support/op_test.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

const std::filesystem::path fixtures = std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "fixtures";

Picture noise(uint64_t seed, uint32_t width, uint32_t height) {
  const std::vector<uint32_t> pixels = test::noise_picture(seed, width, height);
  Picture picture{width, height, std::vector<uint8_t>(pixels.size() * 4)};
  std::memcpy(picture.pixels.data(), pixels.data(), picture.pixels.size());
  return picture;
}

std::vector<uint32_t> pixels_of(const Picture& picture) {
  std::vector<uint32_t> pixels(picture.pixels.size() / 4);
  std::memcpy(pixels.data(), picture.pixels.data(), picture.pixels.size());
  return pixels;
}

// What the graph's first nodes should make of it, by plain loops.
std::vector<float> reference_image(const Preprocess& p, const Picture& picture, uint64_t channels) {
  const PreparedPicture prepared = prepare_picture(p, picture.height, picture.width, "picture");
  const std::vector<uint32_t> pixels = pixels_of(picture);
  std::vector<uint32_t> part;
  for (uint32_t y = 0; y < prepared.resample.height; ++y) {
    const auto row = pixels.begin() + (prepared.top + y) * picture.width + prepared.left;
    part.insert(part.end(), row, row + prepared.resample.width);
  }
  const std::vector<ResamplePicture> batch{prepared.resample};
  const auto resized = reference::resample_columns(
      batch, reference::resample_rows(batch, part, resample_needs(prepared.resample).blocks));
  const std::vector<float> values = p.values(channels);
  std::vector<float> out;
  for (uint64_t c = 0; c < channels; ++c) {
    for (const uint32_t pixel : resized) out.push_back(values[c * 256 + (pixel >> (8 * c) & 255)]);
  }
  return out;
}

struct Results {
  std::vector<uint64_t> numbers;
  std::vector<std::vector<float>> values;
  PictureRunner::Take take() {
    return [this](uint64_t number, std::span<const float> result) {
      numbers.push_back(number);
      values.emplace_back(result.begin(), result.end());
    };
  }
};

void check_runner(const std::string& fixture, const std::string& profile, uint64_t batch,
                  const std::vector<std::pair<uint32_t, uint32_t>>& sizes) {
  INFO(fixture << " in batches of " << batch);
  test::TestDevice& device = test::test_device();
  const Model model = open_model({.model = fixtures / fixture, .arch = {}, .set = {}});
  const ViTConfig& c = model.config;
  const Preprocess p = profile_named(profile, c.image_height, c.image_width);
  Results results;
  PictureRunnerOptions options;
  options.batch = batch;
  PictureRunner runner(*device.pipelines, model, p, options, results.take());
  std::vector<float> images;
  for (const auto& [width, height] : sizes) {
    const Picture picture = noise(sizes.size(), width, height);
    const std::vector<float> image = reference_image(p, picture, c.channels);
    images.insert(images.end(), image.begin(), image.end());
    runner.add(picture, "picture");
  }
  runner.finish();
  REQUIRE(results.numbers.size() == sizes.size());
  Runner plain(*device.pipelines, model);
  const std::vector<float> expected = plain.run(images, batch);
  for (size_t i = 0; i < sizes.size(); ++i) {
    CHECK(results.numbers[i] == i);
    const auto first = expected.begin() + static_cast<std::ptrdiff_t>(i * plain.result_elements());
    const std::vector<double> reference(first, first + static_cast<std::ptrdiff_t>(plain.result_elements()));
    const std::vector<double> out(results.values[i].begin(), results.values[i].end());
    REQUIRE(out.size() == reference.size());
    CHECK(test::relative_error(out, reference) <= 1e-6);
  }
  test::require_no_validation_messages();
}

}  // namespace

TEST_CASE("pictures of many sizes give what a model gives for their tensors") {
  const std::vector<std::pair<uint32_t, uint32_t>> sizes{{32, 32}, {50, 33}, {7, 90}, {640, 480},
                                                         {1, 1},   {36, 36}, {90, 7}, {33, 50}};
  for (const uint64_t batch : {1, 3, 32}) check_runner("timm_vit", "timm", batch, sizes);
  check_runner("hf_deit", "torchvision", 3, {{40, 30}, {301, 403}, {30, 30}, {31, 44}});
}

TEST_CASE("a model of one channel sees the first byte, in a size that is not square") {
  check_runner("timm_non_square", "siglip", 2, {{40, 30}, {24, 16}, {91, 17}});
  check_runner("myvit", "grey", 4, {{28, 28}, {14, 57}, {300, 200}});
}

// tests/parity/make_shapes_fixture.py
TEST_CASE("pictures that keep their shape give what transformers makes of a batch with masks") {
  test::TestDevice& device = test::test_device();
  const nlohmann::json file = read_json(fixtures.parent_path() / "shapes" / "pictures.json");
  const NpyFile features(fixtures.parent_path() / "shapes" / "features.npy");
  const std::vector<double> expected = features.values<double>();
  const Model model = open_model({.model = fixtures / "hf_siglip2"});
  Preprocess p = model.preprocess;
  REQUIRE(p.kept_shape == KeptShape{.patch = 8});
  p.kept_shape->most_patches = file.at("most_patches");
  const size_t count = file.at("pictures").size(), width = expected.size() / count;
  for (const uint64_t batch : {1, 2, 32}) {
    INFO("batches of " << batch);
    Results results;
    PictureRunnerOptions options;
    options.result = Result::features;
    options.batch = batch;
    PictureRunner runner(*device.pipelines, model, p, options, results.take());
    // All three times, so that shapes wait for their like, and for room.
    for (size_t i = 0; i < 3 * count; ++i) {
      const auto& picture = file.at("pictures")[i % count];
      runner.add(noise(picture.at("seed"), picture.at("from")[0], picture.at("from")[1]), "picture");
    }
    runner.finish();
    REQUIRE(results.numbers.size() == 3 * count);
    for (size_t i = 0; i < 3 * count; ++i) {
      INFO("picture " << i);
      CHECK(results.numbers[i] == i);
      const auto first = expected.begin() + static_cast<std::ptrdiff_t>(i % count * width);
      const std::vector<double> reference(first, first + static_cast<std::ptrdiff_t>(width));
      const std::vector<double> out(results.values[i].begin(), results.values[i].end());
      CHECK(test::relative_error(out, reference) <= 2e-5);
    }
  }
  PictureRunnerOptions tokens;
  tokens.result = Result::tokens;
  CHECK_THROWS_MATCHES(
      PictureRunner(*device.pipelines, model, p, tokens, {}), Error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("numbers of tokens")));
  test::require_no_validation_messages();
}

TEST_CASE("what can't be run in several shapes says why") {
  const auto refusal = [](const char* fixture) {
    try {
      open_model({.model = fixtures / fixture, .profile = "naflex"});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string begin = "profile naflex: pictures that keep their shape can't be shown to this model: ";
  CHECK(refusal("hf_dinov3") == begin + "its positions are rotary");
  CHECK(refusal("hf_beit") == begin + "its attention has a relative bias");
  CHECK(refusal("timm_vit") == "");
  // Of a model whose files ask for what it can't be shown, numbers are taken.
  const test::TemporaryFolder folder;
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(fixtures / "hf_siglip2" / name, folder / name);
  folder.file("preprocessor_config.json",
              R"({"image_processor_type": "Siglip2ImageProcessor", "patch_size": 16})");
  const Model model = open_model({.model = folder.path()});
  CHECK_THROWS_MATCHES(require_pictures(model), Error,
                       Catch::Matchers::MessageMatches(
                           Catch::Matchers::ContainsSubstring("found patches of 16 pixels, expected its 8")));
}

TEST_CASE("who takes pictures of one size stretches them, and is told so") {
  const Model model = open_model({.model = fixtures / "hf_siglip2"});
  std::vector<std::string> said;
  const Warn warn = [&](const std::string& sentence) { said.push_back(sentence); };
  require_pictures(model, warn, true);
  CHECK(said.empty());
  require_pictures(model, warn);
  const Preprocess p = stretched_pictures(model, warn);
  CHECK(said == std::vector<std::string>(2,
                                         "profile naflex: pictures keep their shape there; here they are "
                                         "stretched to 32x32 pixels"));
  CHECK_FALSE(p.kept_shape);
  CHECK(p.of_picture(20, 300) == p);
  // Whoever asks for a size gets that.
  const Model sized = open_model({.model = fixtures / "hf_siglip2", .image_height = 64, .image_width = 16});
  CHECK_FALSE(sized.preprocess.kept_shape);
  CHECK(sized.preprocess.width() == 16);
}

TEST_CASE("a picture larger than the device takes is resized on the host, with the same bytes") {
  for (const char* profile : {"timm", "clip", "siglip"}) {
    const Preprocess p = profile_named(profile, 31, 31);
    Picture picture = noise(5, 203, 150);
    const std::vector<float> expected = reference_image(p, picture, 3);
    const PicturePart part = prepare_part(p, picture, {.pixels = 2000, .blocks = 99, .words = 9999}, "large");
    CHECK(part.picture->width == 31);
    const std::vector<float> values = p.values(3);
    size_t wrong = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const size_t c = i / (31 * 31), at = i % (31 * 31);
      wrong += values[c * 256 + part.picture->pixels[at * 4 + c]] != expected[i];
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("capacities are powers of two up to what the device binds") {
  Capabilities device;
  device.max_storage_range = 128 << 20;
  const PictureCapacity largest = PictureCapacity::largest(device, 224);
  CHECK(largest.pixels == 32 << 20);
  CHECK(largest.blocks * 64 * 224 * 4 <= device.max_storage_range);
  const PictureCapacity some =
      PictureCapacity::covering({.pixels = 750'000, .blocks = 12, .words = 30'000}, largest);
  CHECK(some == PictureCapacity{1 << 20, 16, 1 << 15});
  CHECK(PictureCapacity::covering({.pixels = 20 << 20, .blocks = 1, .words = 1}, largest).pixels == 32 << 20);
  CHECK_FALSE(largest.holds({.pixels = 33 << 20, .blocks = 1, .words = 1}));
}

TEST_CASE("pictures that overflow f16 are run again with what overflows in f32") {
  test::TestDevice& device = test::test_device();
  test::skip_without_f16();
  const Model model = open_model(
      {.model = fixtures / "timm_large_hidden" / "model.safetensors", .arch = {}, .set = {"heads=2"}});
  const Preprocess p = profile_named("timm", 16, 16);
  for (const bool check_range : {false, true}) {
    std::vector<std::string> said;
    std::array<Results, 2> results;  // f32 and f16
    for (const DType dtype : {DType::f32, DType::f16}) {
      PictureRunnerOptions options;
      options.dtype = dtype;
      options.batch = 2;
      options.warn = [&](const std::string& sentence) { said.push_back(sentence); };
      options.check_range = check_range && dtype == DType::f16;
      PictureRunner runner(*device.pipelines, model, p, options, results[dtype == DType::f16].take());
      for (uint32_t i = 0; i < 7; ++i) runner.add(noise(i, 20 + 60 * i, 300 - 40 * i), "picture");
      runner.finish();
    }
    CHECK(results[1].numbers == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6});
    for (size_t i = 0; i < 7; ++i) {
      const auto wide = [](const std::vector<float>& v) { return std::vector<double>(v.begin(), v.end()); };
      CHECK(test::relative_error(wide(results[1].values[i]), wide(results[0].values[i])) <= 5e-3);
    }
    REQUIRE(said.size() == 1);
    CHECK_THAT(said[0], Catch::Matchers::ContainsSubstring("blocks.0.mlp runs in f32"));
  }
  test::require_no_validation_messages();
}

TEST_CASE("a picture that is refused leaves the others alone") {
  test::TestDevice& device = test::test_device();
  const Model model = open_model({.model = fixtures / "timm_vit", .arch = {}, .set = {}});
  Results results;
  PictureRunnerOptions options;
  options.batch = 2;
  PictureRunner runner(*device.pipelines, model, profile_named("timm", 32, 32), options, results.take());
  runner.add(noise(1, 40, 40), "first");
  const Picture thin{300'000'000, 1, {}};
  CHECK_THROWS_MATCHES(runner.add(thin, "thin.png"), Error,
                       Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("thin.png")));
  CHECK(runner.add(noise(2, 40, 40), "second") == 1);
  runner.finish();
  CHECK(results.numbers == std::vector<uint64_t>{0, 1});
  CHECK(results.values[0] != results.values[1]);
  CHECK_THROWS_MATCHES(
      PictureRunner(*device.pipelines, model, profile_named("timm", 48, 48), options, results.take()), Error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("48 x 48")));
}

}  // namespace vitrine
