// Whole models against PyTorch in float64: every fixture of tests/parity, read as its family published
// it, in f32 and f16.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/files/safetensors_writer.h"
#include "model/files/tensor_files.h"
#include "model/files/weights.h"
#include "model/run/runner.h"
#include "model/vit/parameters.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "runtime/util/text.h"
#include "tests/support/op_test.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"

using namespace vitrine;

namespace {

const std::filesystem::path parity = std::filesystem::path(VITRINE_TEST_DATA) / "parity";

std::vector<std::filesystem::path> fixtures_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

ModelOptions options_of(const std::filesystem::path& fixture, const nlohmann::json& meta) {
  ModelOptions options;
  const std::string model = meta.at("model");
  options.model = model == "." ? fixture : fixture / model;
  options.set = meta.at("set").get<std::vector<std::string>>();
  return options;
}

// The relative error of one output against its file, checked to be within the fixture's limit.
void check_output(const std::filesystem::path& reference_file, Model& model, const std::string& what,
                  std::span<const float> images, const nlohmann::json& limits) {
  const std::vector<double> reference = NpyFile(reference_file).values<double>();
  REQUIRE(*std::ranges::max_element(reference) > *std::ranges::min_element(reference));
  for (const DType dtype : {DType::f32, DType::f16}) {
    if (!test::stores(dtype)) continue;
    INFO(shown(reference_file) << " " << name_of(dtype));
    Runner runner(*test::test_device().pipelines, model, {.dtype = dtype, .result = result_named(what)});
    const std::vector<float> out = runner.run(images, 64);
    REQUIRE(out.size() == reference.size());
    CHECK(test::relative_error(std::vector<double>(out.begin(), out.end()), reference) <=
          limits.at(std::string(name_of(dtype))).get<double>());
  }
}

// At its own image size and at another one, for which the family's own rule resamples the positions. Returns
// what was warned of.
std::vector<std::string> check_fixture(const std::filesystem::path& fixture) {
  const nlohmann::json meta = read_json(fixture / "meta.json");
  std::vector<std::string> warnings;
  const Warn warn = [&](const std::string& sentence) { warnings.push_back(sentence); };
  ModelOptions options = options_of(fixture, meta);
  Model model = open_model(options, warn);
  const std::vector<float> images = NpyFile(fixture / "input.npy").values<float>();
  for (const auto& [name, shape] : meta.at("outputs").items())
    check_output(fixture / (name + ".npy"), model, name, images, meta.at("limits"));
  const ViTConfig& c = model.config;
  const bool of_a_grid = c.relative_bias == RelativeBias::own || c.relative_bias == RelativeBias::shared;
  // Of these transformers and timm (CaiT) refuse other sizes than their own.
  const bool refused = model.family == "hf_sam" || model.family == "hf_ast" || model.family == "hf_video" ||
                       model.family == "hf_mgpstr" ||
                       (model.family == "hf_aimv2" && c.positions == Positions::learned) ||
                       c.class_blocks > 0;
  const bool one_size = (of_a_grid && c.relative_hidden == 0) || refused;
  const bool any_size = c.relative_bias == RelativeBias::decomposed || c.positions == Positions::learned ||
                        c.positions == Positions::sincos_grid || c.rotary != Rotary::none ||
                        c.relative_hidden > 0;
  CHECK(meta.contains("resized") == (any_size && !one_size));
  if (meta.contains("resized")) {
    options.image_height = meta["resized"]["image_size"][0];
    options.image_width = meta["resized"]["image_size"][1];
    Model other = open_model(options);
    const std::string what = meta["resized"]["output"];
    check_output(fixture / ("resized_" + what + ".npy"), other, what,
                 NpyFile(fixture / "resized_input.npy").values<float>(), meta.at("limits"));
  }
  test::require_no_validation_messages();
  return warnings;
}

}  // namespace

TEST_CASE("every parity fixture is computed as PyTorch computes it") {
  test::test_device();
  const auto all = fixtures_in(parity / "fixtures");
  REQUIRE(all.size() >= 30);
  for (const std::filesystem::path& fixture : test::of_turn(all)) CHECK(check_fixture(fixture).empty());
}

// As a trainer that runs a model in parallel saves it.
TEST_CASE("every parity fixture is the same model inside a wrapper") {
  size_t wrapped = 0;
  for (const std::filesystem::path& fixture : fixtures_in(parity / "fixtures")) {
    const nlohmann::json meta = read_json(fixture / "meta.json");
    ModelOptions options = options_of(fixture, meta);
    if (!std::filesystem::exists(options.model / "config.json")) continue;
    INFO(shown(fixture));
    const test::TemporaryFolder folder;
    const TensorFiles files(options.model);
    std::vector<TensorToWrite> tensors;
    for (const StoredTensor& tensor : files.tensors())
      tensors.push_back(
          {"module." + tensor.info->name, tensor.info->dtype, tensor.info->shape, tensor.bytes()});
    write_safetensors(folder / "model.safetensors", tensors);
    std::filesystem::copy_file(options.model / "config.json", folder / "config.json");
    const Model plain = open_model(options);
    options.model = folder.path();
    const Model inside = open_model(options);
    REQUIRE(inside.config == plain.config);
    for (const Parameter& parameter : parameters_of(plain.config)) {
      INFO(parameter.name);
      const auto bytes = [&](const Model& model) {
        std::vector<std::byte> all;
        for (const auto& part : model.constants->find(parameter.name, parameter.shape, DType::f32))
          all.insert(all.end(), part.bytes.begin(), part.bytes.end());
        return all;
      };
      CHECK(bytes(inside) == bytes(plain));
    }
    ++wrapped;
  }
  CHECK(wrapped >= 30);
}

TEST_CASE(
    "the vision tower of a model that talks is computed as PyTorch computes it, and what is passed over is "
    "said") {
  test::test_device();
  const auto all = fixtures_in(parity / "within");
  REQUIRE(all.size() >= 2);
  for (const std::filesystem::path& fixture : all) {
    const std::vector<std::string> warnings = check_fixture(fixture);
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], Catch::Matchers::ContainsSubstring("passed over") &&
                                Catch::Matchers::ContainsSubstring("language_model"));
  }
}
