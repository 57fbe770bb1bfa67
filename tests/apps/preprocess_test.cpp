// vitrine preprocess as a user calls it, against hashes of what Pillow and the libraries made of the files
// (tests/parity/make_preprocess_fixture.py).
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/command.h"
#include "tests/support/noise_picture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

const test::Path data = VITRINE_TEST_DATA;
const test::Path pictures = data / "images" / "pictures";

test::CommandResult preprocess(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {VITRINE_PROGRAM, "preprocess"});
  return test::run_command(arguments);
}

}  // namespace

TEST_CASE("vitrine preprocess gives the libraries' bytes and numbers of picture files") {
  test::test_device();
  const test::TemporaryFolder folder;
  const auto file = read_json(data / "parity" / "preprocessing" / "pictures.json");
  CHECK(file.at("cases").size() >= 20);
  for (const auto& entry : file.at("cases")) {
    INFO(entry.dump());
    const uint64_t size = entry.at("size");
    for (const std::string stage : {"resized", "normalized"}) {
      const std::string out = folder / "x.npy";
      const auto result = preprocess({pictures / entry.at("file").get<std::string>(), "--profile",
                                      entry.at("profile").get<std::string>(), "--size", std::to_string(size),
                                      "--stage", stage, "--out", out});
      INFO(result.err);
      REQUIRE(result.status == 0);
      const NpyFile npy(out);
      CHECK(test::fnv(npy.data()) == entry.at(stage).get<std::string>());
      CHECK(npy.header().shape == (stage == "resized" ? std::vector<uint64_t>{size, size, 3}
                                                      : std::vector<uint64_t>{1, 3, size, size}));
    }
  }
}

TEST_CASE("vitrine preprocess turns a picture as the profile's library does, and as it is told") {
  test::test_device();
  const test::TemporaryFolder folder;
  const auto made = [&](const std::string& profile, std::vector<std::string> more) {
    const std::string out = folder / "x.npy";
    std::vector<std::string> arguments{pictures / "jpeg_exif_6.jpg", "--profile", profile, "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = preprocess(arguments);
    INFO(result.err);
    REQUIRE(result.status == 0);
    return test::fnv(NpyFile(out).data());
  };
  for (const char* profile : {"hf", "timm"}) {
    INFO(profile);
    const std::string turned = made(profile, {"--exif"}), stored = made(profile, {"--no-exif"});
    CHECK(turned != stored);
    CHECK(made(profile, {}) == (std::string(profile) == "hf" ? turned : stored));
  }
}

TEST_CASE("vitrine preprocess does what a model's files ask for") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string out = folder / "x.npy", picture = pictures / "jpeg_403x301.jpg";
  const auto shape_of = [&](std::vector<std::string> arguments, const std::string& words) {
    arguments.insert(arguments.begin(), {picture, "--out", out});
    const auto result = preprocess(arguments);
    INFO(result.err);
    REQUIRE(result.status == 0);
    CHECK_THAT(result.out, ContainsSubstring(words));
    return NpyFile(out).header().shape;
  };
  using Dims = std::vector<uint64_t>;
  const test::Path fixtures = data / "parity" / "fixtures";
  CHECK(shape_of({"--model", fixtures / "hf_vit"}, "profile hf: resize to 16 x 16") == Dims{1, 3, 16, 16});
  CHECK(shape_of({"--model", fixtures / "myvit"}, "profile grey") == Dims{1, 1, 28, 28});
  CHECK(shape_of({"--model", fixtures / "myvit", "--stage", "resized"}, "resized") == Dims{28, 28, 1});
  CHECK(shape_of({"--arch", "vit_base_patch16_224"}, "short side to 248") == Dims{1, 3, 224, 224});
  CHECK(shape_of({"--profile", "timm"}, "403 x 301") == Dims{1, 3, 224, 224});
  CHECK(shape_of({"--profile", "clip", "--size", "30x40"}, "crop 40 x 30") == Dims{1, 3, 30, 40});

  const auto said = preprocess({picture, "--out", out, "--model", fixtures / "hf_vit", "--json"});
  REQUIRE(said.status == 0);
  const auto line = nlohmann::json::parse(said.out);
  CHECK(line.at("image") == picture);
  CHECK(line.at("output") == out);
  CHECK(line.at("stage") == "normalized");
  CHECK(line.at("shape") == Dims{1, 3, 16, 16});
  CHECK(line.at("by") == "profile hf");
  CHECK_THAT(line.at("preprocessing").get<std::string>(), ContainsSubstring("resize to 16 x 16"));

  // The same model with files of its own, which ask for another size than it was trained with.
  const test::TemporaryFolder own;
  for (const char* name : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(fixtures / "hf_vit" / name, own / name);
  own.file(
      "preprocessor_config.json",
      R"({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 50}, "crop_size": 48})");
  CHECK(shape_of({"--model", own.path()}, "preprocessor_config.json: resize the short side to 50") ==
        Dims{1, 3, 48, 48});
  CHECK(shape_of({"--model", own.path(), "--size", "96"}, "short side to 100") == Dims{1, 3, 96, 96});
  CHECK(shape_of({"--model", own.path(), "--profile", "siglip"}, "profile siglip") == Dims{1, 3, 16, 16});

  // A DINOv2 takes what its processor makes, and a profile changes how, not how much.
  const test::TemporaryFolder dino;
  std::filesystem::copy(fixtures / "hf_dinov2_classifier", dino.path());
  dino.file(
      "preprocessor_config.json",
      R"({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 50}, "crop_size": 48})");
  CHECK(shape_of({"--model", dino.path()}, "resize the short side to 50") == Dims{1, 3, 48, 48});
  CHECK(shape_of({"--model", dino.path(), "--profile", "timm"}, "profile timm") == Dims{1, 3, 48, 48});
}

TEST_CASE("vitrine preprocess --profile fast is the model's own preprocessing on PyTorch") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string model = data / "parity" / "fixtures" / "hf_vit", picture = pictures / "jpeg_403x301.jpg";
  const auto numbers = [&](std::vector<std::string> arguments) {
    const std::string out = folder / "x.npy";
    arguments.insert(arguments.begin(), {picture, "--out", out});
    const auto result = preprocess(arguments);
    INFO(result.err);
    REQUIRE(result.status == 0);
    return NpyFile(out).values<float>();
  };
  const std::vector<float> own = numbers({"--model", model}),
                           fast = numbers({"--model", model, "--profile", "fast"});
  CHECK(fast == numbers({"--profile", "hf-fast", "--size", "16"}));
  CHECK(own == numbers({"--profile", "hf", "--size", "16"}));
  CHECK(own != fast);
  test::check_failure(preprocess({picture, "--profile", "fast", "--out", folder / "y.npy"}), 2, {"--model"});
  const std::string timm = data / "parity" / "fixtures" / "timm_vit";
  test::check_failure(preprocess({picture, "--profile", "fast", "--model", timm, "--out", folder / "y.npy"}),
                      2, {"no", "PyTorch"});
}

TEST_CASE("vitrine preprocess says in one sentence what is wrong") {
  test::test_device();
  const test::TemporaryFolder folder;
  const std::string out = folder / "x.npy", picture = pictures / "jpeg_8x8.jpg";
  check_failure(preprocess({picture, "--out", out}), 2, {"--model", "--profile"});
  check_failure(preprocess({picture, "--out", out, "--profile", "keras"}), 2, {"keras", "siglip"});
  check_failure(preprocess({picture, "--out", out, "--profile", "timm", "--size", "0"}), 2, {"--size"});
  check_failure(preprocess({picture, "--out", out, "--profile", "timm", "--stage", "raw"}), 2, {"raw"});
  check_failure(preprocess({folder / "none.png", "--out", out, "--profile", "timm"}), 1, {"none.png"});
  check_failure(preprocess({data / "parity" / "README.md", "--out", out, "--profile", "timm"}), 1,
                {"README.md"});
  check_failure(preprocess({picture, "--out", folder / "no" / "x.npy", "--profile", "timm"}), 1, {"x.npy"});
  const std::string bad = folder.file("preprocessor_config.json", "{").parent_path().string();
  for (const char* name : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(data / "parity" / "fixtures" / "hf_vit" / name, folder / name);
  check_failure(preprocess({picture, "--out", out, "--model", bad}), 4, {"preprocessor_config.json"});
  CHECK(folder.names() ==
        std::vector<std::string>{"config.json", "model.safetensors", "preprocessor_config.json"});
}

}  // namespace vitrine
