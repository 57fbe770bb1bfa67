// vitrine attention as a user calls it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "images/image.h"
#include "images/png_writer.h"
#include "runtime/util/npy.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

const test::Path parity = test::Path(VITRINE_TEST_DATA) / "parity";

test::CommandResult attention(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{VITRINE_PROGRAM, "attention", "--dtype", "f32"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return test::run_command(all);
}

// The last image of a fixture's input, which is the one that maps/ holds the weights of.
std::string last_image(const test::TemporaryFolder& folder, const std::string& fixture) {
  const NpyFile all(parity / "fixtures" / fixture / "input.npy");
  std::vector<uint64_t> shape = all.header().shape;
  const std::vector<float> values = all.values<float>();
  const size_t size = values.size() / shape[0];
  shape[0] = 1;
  const std::string path = folder / (fixture + ".npy");
  write_npy(path, shape, std::span(values).last(size));
  return path;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace

TEST_CASE("vitrine attention --raw writes PyTorch's weights, for every layer and head, and rollout") {
  test::test_device();  // skips without a device
  const test::TemporaryFolder folder;
  const std::string image = last_image(folder, "timm_vit"), model = parity / "fixtures" / "timm_vit",
                    raw = folder / "raw.npy";
  constexpr uint64_t depth = 3, heads = 3, n = 17;
  const std::vector<float> reference =
      NpyFile(parity / "maps" / "timm_vit" / "attention.npy").values<float>();
  const auto written = [&](const std::vector<std::string>& more, const std::vector<uint64_t>& shape) {
    std::vector<std::string> arguments{image, "--model", model, "--raw", raw, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = attention(arguments);
    INFO(result.err);
    REQUIRE(result.status == 0);
    CHECK(nlohmann::json::parse(result.out)["raw_shape"] == nlohmann::json(shape));
    const NpyFile file(raw);
    CHECK(file.header().shape == shape);
    return file.values<float>();
  };
  const auto map = [&](uint64_t layer, uint64_t head) {
    return std::span(reference).subspan((layer * heads + head) * n * n, n * n);
  };

  CHECK(largest_difference(written({"--layer", "all"}, {depth, heads, n, n}), reference) <= 1e-5);
  CHECK(largest_difference(written({"--layer", "1"}, {heads, n, n}),
                           std::span(reference).subspan(heads * n * n, heads * n * n)) <= 1e-5);
  CHECK(largest_difference(written({}, {heads, n, n}), std::span(reference).last(heads * n * n)) <= 1e-5);
  CHECK(largest_difference(written({"--layer", "0", "--head", "2"}, {n, n}), map(0, 2)) <= 1e-5);
  CHECK(largest_difference(written({"--layer", "0", "--head", "2", "--token", "4"}, {n}),
                           map(0, 2).subspan(4 * n, n)) <= 1e-5);
  const std::vector<float> rows = written({"--layer", "all", "--token", "16"}, {depth, heads, n});
  CHECK(largest_difference(std::span(rows).last(n), map(2, 2).last(n)) <= 1e-5);

  std::vector<float> mean(n * n);
  for (uint64_t head = 0; head < heads; ++head) {
    for (uint64_t i = 0; i < n * n; ++i) mean[i] += map(1, head)[i] / static_cast<float>(heads);
  }
  CHECK(largest_difference(written({"--layer", "1", "--head", "mean"}, {n, n}), mean) <= 1e-5);

  const std::vector<float> rollout = NpyFile(parity / "maps" / "timm_vit" / "rollout.npy").values<float>();
  CHECK(largest_difference(written({"--rollout"}, {n, n}), rollout) <= 1e-5);
  CHECK(largest_difference(written({"--rollout", "--token", "0"}, {n}), std::span(rollout).first(n)) <= 1e-5);
  CHECK(folder.names() == std::vector<std::string>{"raw.npy", "timm_vit.npy"});
}

TEST_CASE("vitrine attention says whose attention it shows, and where it is highest") {
  test::test_device();
  const test::TemporaryFolder folder;
  const auto told = [&](const std::string& fixture, std::vector<std::string> more) {
    const std::string raw = folder / "raw.npy";
    std::vector<std::string> arguments{last_image(folder, fixture),
                                       "--model",
                                       parity / "fixtures" / fixture / "model.safetensors",
                                       "--set",
                                       "heads=2",
                                       "--raw",
                                       raw,
                                       "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = attention(arguments);
    INFO(result.err);
    REQUIRE(result.status == 0);
    return nlohmann::json::parse(result.out);
  };
  const auto distilled = told("deit_distilled", {"--token", "1"});
  CHECK(distilled["token"] == "distillation token");
  CHECK(distilled["layer"] == 1);
  CHECK(distilled["head"] == "mean");
  CHECK(distilled["first_patch"] == 2);
  CHECK(told("timm_registers", {"--token", "3"})["token"] == "register 2");
  CHECK(told("timm_registers", {"--token", "9"})["token"] == "patch at row 1, column 1");
  CHECK(told("timm_mean_pooled_no_class", {})["token"] == "mean of the patches");
  CHECK(told("timm_mean_pooled_no_class", {"--rollout"})["rollout"] == true);

  const auto pool = told("timm_map_registers", {});
  CHECK(pool["layer"] == "pool");
  CHECK(pool["token"] == "the pooling's query");
  CHECK(pool["raw_shape"] == nlohmann::json({2, 16}));
  CHECK(told("timm_map_registers", {"--layer", "1"})["token"] == "mean of the patches");

  // The class token's row of the last layer, mean of its two heads.
  const auto line = told("deit_distilled", {});
  CHECK(line["token"] == "class token");
  const std::vector<float> all =
      NpyFile(parity / "maps" / "deit_distilled" / "attention.npy").values<float>();
  constexpr uint64_t n = 18, prefix = 2;
  double highest = 0;
  uint64_t at = 0;
  for (uint64_t patch = 0; patch < n - prefix; ++patch) {
    const double weight = (static_cast<double>(all[2 * n * n + prefix + patch]) +
                           static_cast<double>(all[3 * n * n + prefix + patch])) /
                          2;
    if (weight > highest) {
      highest = weight;
      at = patch;
    }
  }
  CHECK(std::abs(line["highest"].get<double>() - highest) <= 1e-5);
  CHECK(line["highest_at"] == nlohmann::json({at / 4, at % 4}));
}

TEST_CASE("vitrine attention lays the map over that part of the picture which the model sees") {
  test::test_device();
  const test::TemporaryFolder folder;
  // 600 x 400 pixels of noise: the model's 32 x 32 are the middle of 52 x 35.
  constexpr uint32_t width = 600, height = 400;
  std::vector<uint8_t> noise(3 * width * height);
  uint32_t state = 1;
  for (size_t i = 0; i < noise.size(); ++i) {
    // Blocks of 50 pixels, so that resizing leaves something of them.
    const size_t block = i / 3 % width / 50 + 12 * (i / 3 / width / 50);
    state = static_cast<uint32_t>(block * 3 + i % 3 + 1) * 2654435761u;
    noise[i] = static_cast<uint8_t>(state >> 24);
  }
  const std::string photo = folder / "photo.png", out = folder / "heat.png",
                    model = parity / "fixtures" / "timm_vit";
  write_png(photo, width, height, 3, noise);
  const auto result =
      attention({photo, "--model", model, "--layer", "1", "--head", "0", "--out", out, "--json"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK(folder.names() == std::vector<std::string>{"heat.png", "photo.png"});
  const auto line = nlohmann::json::parse(result.out);
  CHECK(line["out"] == out);
  const uint64_t row = line["highest_at"][0], column = line["highest_at"][1];

  const Image heat = decode_image(out);
  REQUIRE(heat.height == height);
  REQUIRE(heat.width > width);  // a legend on the right
  const auto light = [&](double x, double y) {
    const uint8_t* pixel = &heat.pixels[4 * (static_cast<size_t>(y) * heat.width + static_cast<size_t>(x))];
    return pixel[0] + pixel[1] + pixel[2];
  };
  // crop_pct 0.9: the short side becomes 35, the long one 52, and the crop begins at 2 and 10.
  constexpr double across = 600.0 / 52, down = 400.0 / 35;
  const auto x_of = [&](double patch) { return (10 + 8 * patch) * across; };
  const auto y_of = [&](double patch) { return (2 + 8 * patch) * down; };
  // The patch with the highest weight has the colour map's light end, the patches that are not beside it
  // have less, and what the model doesn't see is dark.
  const int hottest = light(x_of(static_cast<double>(column) + 0.5), y_of(static_cast<double>(row) + 0.5));
  for (uint64_t r = 0; r < 4; ++r) {
    for (uint64_t c = 0; c < 4; ++c) {
      if (r == row && c == column) continue;
      CHECK(light(x_of(static_cast<double>(c) + 0.5), y_of(static_cast<double>(r) + 0.5)) < hottest);
    }
  }
  CHECK(hottest > 400);
  for (const double x : {1.0, x_of(0) - 2, x_of(4) + 2, 598.0}) CHECK(light(x, 200) < 0.36 * 765);
  for (const double y : {1.0, y_of(0) - 2, y_of(4) + 2, 398.0}) CHECK(light(300, y) < 0.36 * 765);

  // The same over what an .npy shows.
  const auto tensor =
      attention({last_image(folder, "timm_vit"), "--model", model, "--rollout", "--out", out});
  INFO(tensor.err);
  REQUIRE(tensor.status == 0);
  CHECK_THAT(tensor.out, ContainsSubstring("rollout through 3 layers, class token: 4x4 patches"));
  CHECK(decode_image(out).height % 32 == 0);
}

TEST_CASE("vitrine attention --dtype f16 runs in f32 what f16 can't hold") {
  test::skip_without_f16();
  const test::TemporaryFolder folder;
  const std::string image = last_image(folder, "timm_large_hidden");
  const auto weights = [&](const std::string& dtype) {
    const std::string raw = folder / (dtype + ".npy");
    const auto result =
        test::run_command({VITRINE_PROGRAM, "attention", image, "--model",
                           parity / "fixtures" / "timm_large_hidden" / "model.safetensors", "--set",
                           "heads=2", "--layer", "1", "--raw", raw, "--dtype", dtype});
    REQUIRE(result.status == 0);
    CHECK(std::ranges::count(result.err, '\n') == (dtype == "f16" ? 1 : 0));
    if (dtype == "f16") CHECK_THAT(result.err, ContainsSubstring("blocks.0.mlp runs in f32"));
    return NpyFile(raw).values<float>();
  };
  CHECK(largest_difference(weights("f16"), weights("f32")) <= 2e-2);
}

TEST_CASE("vitrine attention counts one head and one layer as one") {
  test::test_device();
  const test::TemporaryFolder folder;
  const auto said = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {parity / "../images/pictures/jpeg_403x301.jpg", "--arch",
                               "vit_tiny_patch16_224", "--image-size", "32", "--set", "dim=64", "--set",
                               "heads=1", "--set", "depth=1", "--out", folder / "heat.png"});
    const auto result = attention(more);
    INFO(result.err);
    REQUIRE(result.status == 0);
    return result.out;
  };
  CHECK_THAT(said({}), ContainsSubstring("layer 0, mean of 1 head, "));
  CHECK_THAT(said({"--rollout"}), ContainsSubstring("rollout through 1 layer, "));
}

TEST_CASE("vitrine attention names the range of what a model has not") {
  const test::TemporaryFolder folder;
  const std::string image = last_image(folder, "timm_vit"), model = parity / "fixtures" / "timm_vit",
                    raw = folder / "raw.npy", out = folder / "out.png";
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {image, "--model", model, "--raw", raw});
    return attention(more);
  };
  check_failure(run({"--layer", "3"}), 2, {"--layer", "'3'", "0 to 2"});
  check_failure(run({"--layer", "-1"}), 2, {"--layer", "'-1'", "0 to 2"});
  check_failure(run({"--layer", "one"}), 2, {"--layer", "'one'"});
  check_failure(run({"--layer", "pool"}), 2, {"--layer", "'pool'", "0 to 2 or all"});
  check_failure(run({"--head", "3"}), 2, {"--head", "'3'", "0 to 2"});
  check_failure(run({"--token", "17"}), 2, {"--token", "17", "0 to 16", "begin at 1"});
  check_failure(run({"--rollout", "--head", "1"}), 2, {"--rollout", "--head"});
  check_failure(run({"--rollout", "--layer", "1"}), 2, {"--rollout", "--layer"});
  check_failure(run({"--layer", "all", "--out", out}), 2, {"--layer", "--out"});
  check_failure(attention({parity / "fixtures" / "timm_vit" / "input.npy", "--model", model, "--raw", raw}),
                2, {"input.npy", "2 images"});
  check_failure(attention({image, "--model", model}), 2, {"--out", "--raw"});
  check_failure(attention({folder / "none.npy", "--model", model, "--raw", raw}), 4, {"none.npy"});
  check_failure(attention({"--model", model, "--raw", raw}), 2, {"image"});
  check_failure(attention({folder / "none.jpg", "--model", model, "--out", out}), 1, {"none.jpg"});
  check_failure(attention({parity / "fixtures" / "timm_vit" / "config.json", "--model", model, "--out", out}),
                1, {"config.json"});
  CHECK(folder.names() == std::vector<std::string>{"timm_vit.npy"});
}

TEST_CASE("vitrine attention leaves nothing behind where it cannot write") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string image = last_image(folder, "timm_vit"), model = parity / "fixtures" / "timm_vit";
  check_failure(attention({image, "--model", model, "--raw", folder / "none" / "raw.npy"}), 1, {"raw.npy"});
  check_failure(attention({image, "--model", model, "--out", folder / "none" / "heat.png"}), 1, {"heat.png"});
  CHECK(folder.names() == std::vector<std::string>{"timm_vit.npy"});
}

}  // namespace vitrine
