// vitrine features as a user calls it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "images/image.h"
#include "images/png_writer.h"
#include "runtime/util/npy.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

const test::Path parity = test::Path(VITRINE_TEST_DATA) / "parity";
const std::string model =
    parity / "fixtures" / "timm_vit";  // 3 blocks of width 36, 4x4 patches, a class token

test::CommandResult features(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{VITRINE_PROGRAM, "features", "--dtype", "f32", "--model", model};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return test::run_command(all);
}

std::string grey_picture(const test::TemporaryFolder& folder) {
  std::vector<uint8_t> pixels(50 * 40 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i / 97);
  const std::string path = folder / "picture.png";
  write_png(path, 50, 40, 3, pixels);
  return path;
}

}  // namespace

TEST_CASE("vitrine features writes blocks' maps in either layout, and the tokens in front of the patches") {
  test::test_device();  // skips without a device
  const test::TemporaryFolder folder;
  const std::string picture = grey_picture(folder), maps = folder / "maps.npy", rows = folder / "rows.npy",
                    prefix = folder / "prefix.npy", last = folder / "last.npy",
                    tokens = folder / "tokens.npy";
  const test::CommandResult all =
      features({picture, "--layer", "all", "--out", maps, "--prefix", prefix, "--json"});
  INFO(all.err);
  REQUIRE(all.status == 0);
  const nlohmann::json line = nlohmann::json::parse(all.out);
  CHECK(line.at("layers") == std::vector<uint64_t>{0, 1, 2});
  CHECK(line.at("shape") == std::vector<uint64_t>{3, 1, 36, 4, 4});
  CHECK(line.at("prefix_shape") == std::vector<uint64_t>{3, 1, 1, 36});
  const std::vector<float> stacked = NpyFile(maps).values<float>();
  REQUIRE(stacked.size() == 3 * 36 * 16);

  // One of them, counted from the end, turned; and the last block's tokens behind the norm.
  REQUIRE(features({picture, "--layer", "-2", "--layout", "NLC", "--out", rows}).status == 0);
  const NpyFile turned(rows);
  CHECK(turned.header().shape == std::vector<uint64_t>{1, 16, 36});
  const std::vector<float> middle = turned.values<float>();
  for (size_t patch = 0; patch < 16; ++patch) {
    for (size_t i = 0; i < 36; ++i) REQUIRE(middle[patch * 36 + i] == stacked[(36 + i) * 16 + patch]);
  }
  REQUIRE(features({picture, "--norm", "--layout", "NLC", "--out", last, "--prefix", prefix}).status == 0);
  REQUIRE(test::run_command({VITRINE_PROGRAM, "embed", "--dtype", "f32", "--model", model, picture,
                             "--tokens", "--out", tokens})
              .status == 0);
  std::vector<float> expected = NpyFile(tokens).values<float>(), found = NpyFile(prefix).values<float>();
  const std::vector<float> patches = NpyFile(last).values<float>();
  found.insert(found.end(), patches.begin(), patches.end());
  CHECK(found == expected);
}

TEST_CASE("vitrine features --colors draws a square for each patch") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string colors = folder / "colors.png";
  const test::CommandResult result = features({grey_picture(folder), "--colors", colors});
  INFO(result.err);
  REQUIRE(result.status == 0);
  const Image image = decode_image(colors);
  CHECK(image.width == 384);
  CHECK(image.height == 384);
  const auto pixel = [&](uint32_t x, uint32_t y) {
    return std::vector<uint8_t>(image.pixels.begin() + 4 * (y * 384 + x),
                                image.pixels.begin() + 4 * (y * 384 + x) + 4);
  };
  CHECK(pixel(0, 0) == pixel(95, 95));
  size_t others = 0;
  for (uint32_t patch = 1; patch < 16; ++patch)
    others += pixel(96 * (patch % 4), 96 * (patch / 4)) != pixel(0, 0);
  CHECK(others >= 10);
}

TEST_CASE("vitrine features refuses what a model doesn't have") {
  const test::TemporaryFolder folder;
  const std::string picture = grey_picture(folder), out = folder / "out.npy";
  test::check_failure(features({picture}), 2, {"--out", "--prefix", "--colors"});
  for (const char* layers : {"3", "-4", "1,,2", "x", "1,"}) {
    test::check_failure(features({picture, "--out", out, "--layer", layers}), 2, {"--layer", "0 to 2"});
  }
  const std::string no_class = parity / "fixtures" / "timm_mean_pooled_no_class" / "model.safetensors";
  const auto other = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {VITRINE_PROGRAM, "features", picture, "--model", no_class, "--set", "heads=2"});
    return test::run_command(more);
  };
  test::check_failure(other({"--prefix", out}), 2, {"--prefix", "no tokens but the patches'"});
  test::check_failure(other({"--out", out, "--norm"}), 2, {"last norm"});
  CHECK(!std::filesystem::exists(out));
}

}  // namespace vitrine
