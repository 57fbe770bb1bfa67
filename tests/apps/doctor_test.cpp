#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/validation_note.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

test::CommandResult doctor(std::vector<std::string> arguments) {
  const test::TemporaryFolder cache;
  arguments.insert(arguments.begin(), {VITRINE_PROGRAM, "doctor"});
  return test::run_command(
      arguments, {{"VITRINE_CACHE_DIR", cache.path()}, {"VITRINE_VALIDATE", test::usual_validation_name}});
}

}  // namespace

TEST_CASE("vitrine doctor --compile-only shows what a model's pipelines are") {
  const Capabilities& device = test::test_device().device->capabilities();
  const test::CommandResult text = doctor({"--compile-only", "--arch", "myvit_mnist", "--batch", "2"});
  CHECK(text.status == 0);
  CHECK(test::besides_validation_note(text.err) == "");
  CHECK_THAT(text.out, ContainsSubstring(device.name) && ContainsSubstring("myvit_mnist f32 batch 2") &&
                           ContainsSubstring("matmul ") && ContainsSubstring("registers"));

  const test::CommandResult json =
      doctor({"--compile-only", "--json", "--arch", "myvit_mnist", "--batch", "1,3", "--dtype", "f32"});
  CHECK(json.status == 0);
  std::istringstream lines(json.out);
  size_t models = 0, pipelines = 0;
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) {
    last = nlohmann::json::parse(line);
    models += last.contains("model");
    pipelines += last.contains("shader");
  }
  CHECK(models == 2);
  CHECK(pipelines > 5);
  CHECK(last["pipelines"] == pipelines);
  CHECK(last["device"] == device.name);
}

TEST_CASE("vitrine doctor --compile-only shows what the pipelines of a training's step are") {
  test::test_device();
  const std::string training = VITRINE_TEST_DATA "/../configs/digits.json";
  const test::CommandResult json =
      doctor({"--compile-only", "--json", "--dtype", "f32", "--train", training});
  CHECK(json.status == 0);
  std::istringstream lines(json.out);
  std::vector<nlohmann::json> models;
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json parsed = nlohmann::json::parse(line);
    if (parsed.contains("model")) models.push_back(std::move(parsed));
  }
  REQUIRE(models.size() == 1);
  CHECK(models[0]["model"] == training);
  CHECK(models[0]["kernels"].contains("attention_gradient"));
  CHECK(models[0]["kernels"].contains("adam_step"));
}

TEST_CASE("vitrine doctor --model shows how large the numbers of each layer get") {
  test::test_device();
  const test::Path fixture = test::Path(VITRINE_TEST_DATA) / "parity" / "fixtures" / "timm_large_hidden";
  const std::string model = fixture / "model.safetensors", input = fixture / "input.npy";
  const test::CommandResult text = doctor({"--model", model, "--set", "heads=2"});
  CHECK(text.status == 0);
  CHECK(test::besides_validation_note(text.err) == "");
  CHECK_THAT(text.out, ContainsSubstring("8 images of random pixels: 1 of 6 layers") &&
                           ContainsSubstring("blocks.1.attn") && ContainsSubstring("blocks.0.mlp.fc1"));

  const test::CommandResult json = doctor({"--model", model, "--set", "heads=2", "--input", input, "--json"});
  CHECK(json.status == 0);
  std::istringstream lines(json.out);
  std::map<std::string, nlohmann::json> layers;
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    layers[row["layer"]] = row;
  }
  REQUIRE(layers.size() == 6);
  for (const auto& [layer, row] : layers)
    CHECK(row["stored_as"] == (layer == "blocks.0.mlp" ? "f32" : "f16"));
  // What PyTorch finds in float64.
  CHECK(std::abs(layers["blocks.0.mlp"]["largest"].get<double>() - 1024563.18) < 10);
  CHECK(layers["blocks.0.mlp"]["tensor"] == "blocks.0.mlp.fc1");
  CHECK(layers["head"]["weight"] == "head.weight");

  CHECK(doctor({"--model", model}).status == 4);
  CHECK(doctor({"--model", model, "--compile-only"}).status == 2);
  CHECK(doctor({"--model", model, "--set", "heads=2", "--input", model}).status == 4);
}

TEST_CASE("vitrine doctor tests kernels and says which may be used") {
  const Capabilities& device = test::test_device().device->capabilities();
  const test::CommandResult text = doctor({"--only", "softmax"});
  INFO(text.err);
  CHECK(text.status == 0);
  CHECK(test::besides_validation_note(text.err) == "");
  CHECK_THAT(text.out, ContainsSubstring(device.name) && ContainsSubstring("softmax=simple") &&
                           ContainsSubstring("self-tests passed"));

  const test::CommandResult json = doctor({"--only", "unary=simple", "--json"});
  INFO(json.err);
  CHECK(json.status == 0);
  std::istringstream lines(json.out);
  size_t passed = 0, not_run = 0;
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) {
    last = nlohmann::json::parse(line);
    if (!last.contains("verdict")) continue;
    INFO(line);
    CHECK(last["verdict"] != "failed");
    passed += last["verdict"] == "passed";
    not_run += last["verdict"] == "not run";
  }
  CHECK(passed > 5);
  CHECK(last["passed"] == passed);
  CHECK(last["not_run"] == not_run);
  CHECK(last["failed"] == 0);
}

TEST_CASE("vitrine doctor refuses what makes no sense") {
  test::test_device();
  CHECK(doctor({"--compile-only", "--batch", "0"}).status == 2);
  CHECK(doctor({"--compile-only", "--only", "matmul"}).status == 2);
  const std::string training = VITRINE_TEST_DATA "/../configs/digits.json";
  CHECK(doctor({"--train", training}).status == 2);
  CHECK(doctor({"--compile-only", "--train", training + ".none"}).status == 4);
  const test::CommandResult nothing = doctor({"--only", "gemm"});
  CHECK(nothing.status == 2);
  CHECK_THAT(nothing.err, ContainsSubstring("gemm"));
  const test::CommandResult unknown = doctor({"--compile-only", "--arch", "resnet50"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("resnet50"));
}

}  // namespace vitrine
