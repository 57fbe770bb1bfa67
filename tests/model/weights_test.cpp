#include "model/files/weights.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstring>
#include <map>

#include "model/families/families.h"
#include "model/files/safetensors_writer.h"
#include "model/vit/parameters.h"
#include "model/vit/presets.h"
#include "tests/support/temporary_folder.h"

using namespace vitrine;
using Catch::Matchers::ContainsSubstring;

namespace {

// Writes a checkpoint of MyViT whose n-th float is n, after `change` had its way with it.
struct Checkpoint {
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, std::vector<uint64_t>> shapes;

  explicit Checkpoint(const ViTConfig& config) {
    float next = 1;
    for (const Parameter& parameter : parameters_of(config)) {
      if (!parameter.learned()) continue;
      for (const FilePart& part : file_parts(parameter, config, {&family_named("myvit"), ""}, {})) {
        uint64_t count = 1;
        for (const uint64_t extent : part.shape) count *= extent;
        shapes[part.name] = part.shape;
        for (uint64_t i = 0; i < count; ++i) values[part.name].push_back(next++);
      }
    }
  }
  void write(const std::filesystem::path& path, FileDType dtype = FileDType::f32) const {
    std::vector<TensorToWrite> tensors;
    for (const auto& [name, numbers] : values) {
      tensors.push_back({name, dtype, shapes.at(name), std::as_bytes(std::span(numbers))});
    }
    write_safetensors(path, tensors);
  }
};

float number(const ConstantPart& part, size_t index) {
  float value;
  std::memcpy(&value, part.bytes.data() + index * sizeof value, sizeof value);
  return value;
}

std::string refusal(const ModelOptions& options, ErrorCode code = ErrorCode::bad_file) {
  try {
    open_model(options);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("was not refused");
  return {};
}

}  // namespace

TEST_CASE("a constant of several tensors is handed out in parts, in order") {
  const test::TemporaryFolder folder;
  const Checkpoint checkpoint(preset("myvit_mnist"));
  checkpoint.write(folder / "m.safetensors");
  const Model model = open_model({.model = folder / "m.safetensors"});
  CHECK(model.family == "myvit");
  const ConstantParts parts = model.constants->find("blocks.1.attn.k.weight", {2, 4, 4}, DType::f32);
  REQUIRE(parts.size() == 2);
  CHECK(number(parts[0], 0) == checkpoint.values.at("blocks.1.mhsa.k_mappings.0.weight")[0]);
  CHECK(number(parts[1], 15) == checkpoint.values.at("blocks.1.mhsa.k_mappings.1.weight")[15]);
  // The positions are not stored but computed.
  const ConstantParts positions = model.constants->find("pos_embed", {50, 8}, DType::f32);
  REQUIRE(positions.size() == 1);
  CHECK(number(positions[0], 1) == 1.0f);
  CHECK_THROWS_AS(model.constants->find("nothing", {1}, DType::f32), Error);
  CHECK_THROWS_AS(model.constants->find("cls_token", {9}, DType::f32), Error);
}

TEST_CASE("a NaN among the weights is a warning that names the tensor, once") {
  const test::TemporaryFolder folder;
  Checkpoint checkpoint(preset("myvit_mnist"));
  checkpoint.values.at("blocks.0.norm1.bias")[3] = -std::nanf("");
  checkpoint.values.at("blocks.0.norm2.bias")[3] = -INFINITY;
  checkpoint.write(folder / "m.safetensors");
  std::vector<std::string> warnings;
  const Model model = open_model({.model = folder / "m.safetensors"},
                                 [&](const std::string& text) { warnings.push_back(text); });
  for (int i = 0; i < 2; ++i) {
    for (const char* name : {"blocks.0.norm1.bias", "blocks.0.norm2.bias", "blocks.0.norm1.weight"}) {
      model.constants->find(name, {8}, DType::f32);
    }
  }
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("m.safetensors") && ContainsSubstring("'blocks.0.norm1.bias'"));
}

TEST_CASE("a checkpoint that can't be this model is refused before anything is loaded") {
  const test::TemporaryFolder folder;
  const Checkpoint checkpoint(preset("myvit_mnist"));
  checkpoint.write(folder / "model.safetensors");
  CHECK_THAT(refusal({.model = folder.path(), .set = {"dim=16"}}),
             ContainsSubstring("'class_token' has shape [1, 8], expected [1, 16]"));
  CHECK_THAT(refusal({.model = folder.path(), .set = {"depth=1"}}), ContainsSubstring("is left over"));
  CHECK_THAT(refusal({.model = folder.path(), .set = {"heads=3"}}),
             ContainsSubstring("with --set heads=3") && ContainsSubstring("multiple of the 3 heads"));
  CHECK_THAT(refusal({.model = folder.path(), .set = {"heads"}}, ErrorCode::usage),
             ContainsSubstring("KEY=VALUE"));
  checkpoint.write(folder / "model.safetensors", FileDType::i32);
  CHECK_THAT(refusal({.model = folder.path()}), ContainsSubstring("of type I32, expected F32, F16 or BF16"));
}

TEST_CASE("config.json is checked before the tensors, and its sizes before memory is taken") {
  const test::TemporaryFolder folder;
  Checkpoint(preset("myvit_mnist")).write(folder / "model.safetensors");
  const auto with_config = [&](const char* text) {
    folder.file("config.json", text);
    return refusal({.model = folder.path()});
  };
  CHECK_THAT(with_config("[]"), ContainsSubstring("expected an object"));
  CHECK_THAT(with_config("{}"), ContainsSubstring("model_type"));
  CHECK_THAT(with_config(R"({"model_type": "bert"})"),
             ContainsSubstring("\"bert\"") && ContainsSubstring("deit"));
  CHECK_THAT(with_config(R"({"vitrine": {"dim": 65536, "depth": 1024, "heads": 1024}})"),
             ContainsSubstring("billion parameters"));
  CHECK_THAT(with_config(R"({"vitrine": {"dim": [8]}})"), ContainsSubstring("\"dim\" is [8]"));
  folder.file("config.json",
              R"({"vitrine": {"image_height": 28, "image_width": 28, "patch_height": 4, "patch_width": 4,
    "channels": 1, "dim": 8, "depth": 2, "heads": 2, "per_head_maps": true, "projection": false, "classes": 10,
    "positions": "sincos", "final_norm": false, "softmax_output": true, "eps": 1e-05}, "label_names": ["nought", "one"]})");
  const Model model = open_model({.model = folder.path()});
  CHECK(model.labels[1] == "one");
  CHECK(model.labels[2] == "class 2");
  CHECK(model.config.softmax_output);
  CHECK(model.config.heads == 2);
}

TEST_CASE("DINOv2 takes the images that its processor makes, unless others are asked for") {
  const std::filesystem::path fixture =
      std::filesystem::path(VITRINE_TEST_DATA) / "parity" / "fixtures" / "hf_dinov2";
  const test::TemporaryFolder folder;
  for (const char* name : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(fixture / name, folder / name);
  const Model plain = open_model({.model = folder.path()});
  CHECK(plain.config.image_height == 16);
  CHECK(plain.stored_grid == Grid{4, 4});
  folder.file("preprocessor_config.json",
              R"({"image_processor_type": "BitImageProcessor", "crop_size": {"height": 24, "width": 12},
    "size": {"shortest_edge": 30}})");
  const Model cropped = open_model({.model = folder.path()});
  CHECK(cropped.config.image_height == 24);
  CHECK(cropped.config.image_width == 12);
  CHECK(cropped.stored_grid == Grid{4, 4});
  CHECK(cropped.constants->find("pos_embed", {19, 24}, DType::f32).front().bytes.size() == 19 * 24 * 4);
  const Model asked = open_model({.model = folder.path(), .image_height = 20, .image_width = 20});
  CHECK(asked.config.image_height == 20);
  folder.file("preprocessor_config.json", R"({"crop_size": 3, "size": 3})");
  CHECK_THAT(
      refusal({.model = folder.path()}),
      ContainsSubstring("preprocessor_config.json: images of 3x3") && ContainsSubstring("patch_height"));
}

TEST_CASE("exactly one of a checkpoint and an architecture is asked for") {
  CHECK_THAT(refusal({}, ErrorCode::usage), ContainsSubstring("--model"));
  CHECK_THAT(refusal({.model = "m", .arch = "vit_b_16"}, ErrorCode::usage), ContainsSubstring("both"));
  CHECK_THAT(refusal({.arch = "vit_b_16", .set = {"heads=7"}}, ErrorCode::usage),
             ContainsSubstring("--arch vit_b_16"));
  CHECK_THAT(refusal({.model = "/nonexistent/m.safetensors"}),
             ContainsSubstring("/nonexistent/m.safetensors"));
}

TEST_CASE("random weights are handed out as the initialisation makes them") {
  const Model model = open_model({.arch = "vit_tiny_patch16_224", .seed = 42});
  const ConstantParts parts = model.constants->find("cls_token", {192}, DType::f32);
  REQUIRE(parts.size() == 1);
  CHECK(std::bit_cast<uint32_t>(number(parts[0], 0)) == 0xbc9b9a40);
  CHECK_THROWS_AS(model.constants->find("cls_token", {1, 192}, DType::f32), Error);
}
