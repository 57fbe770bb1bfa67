// vitrine train and eval as a user calls them, and what is left when they are killed.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <thread>

#include "model/families/families.h"
#include "model/files/safetensors_writer.h"
#include "tests/apps/train_setting.h"
#include "tests/support/command.h"
#include "tests/support/system.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using Setting = test::TrainSetting;
using test::lines_of, test::train_through_kills, test::write_pictures;

}  // namespace

TEST_CASE("vitrine train learns, says how far it is, and leaves a model that eval agrees on") {
  test::test_device();
  const Setting setting;
  const auto result = setting.train("out", {"--epochs", "30", "--json"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  const auto lines = lines_of(result.out);
  REQUIRE(lines.size() == 31);
  for (size_t i = 0; i < 30; ++i) {
    CHECK(lines[i].at("epoch") == i + 1);
    CHECK(lines[i].at("seconds") > 0);
    CHECK(lines[i].at("images_per_second") > 0);
  }
  CHECK(lines[29].at("loss") < 0.7 * lines[0].at("loss").get<double>());
  CHECK(lines[30].at("test_accuracy") >= 0.9);

  const auto eval =
      test::run_command({VITRINE_PROGRAM, "eval", "--data", setting.folder.path().string(), "--model",
                         setting.folder / "out", "--dtype", "f32", "--batch", "7", "--json"});
  INFO(eval.err);
  REQUIRE(eval.status == 0);
  const auto said = nlohmann::json::parse(eval.out);
  CHECK_THAT(said.at("test_loss").get<double>(), WithinAbs(lines[30].at("test_loss").get<double>(), 1e-5));
  CHECK(said.at("test_accuracy") == lines[30].at("test_accuracy"));
  uint64_t samples = 0, right = 0;
  for (size_t label = 0; label < said.at("confusion").size(); ++label) {
    const auto& row = said["confusion"][label];
    uint64_t of_label = 0;
    for (const auto& count : row) of_label += count.get<uint64_t>();
    samples += of_label;
    right += row.at(label).get<uint64_t>();
    CHECK(said["classes"].at(label).at("count") == of_label);
  }
  REQUIRE(samples > 0);
  CHECK(static_cast<double>(right) / static_cast<double>(samples) == said["test_accuracy"].get<double>());

  // Begins where another model has ended.
  const auto more = setting.train("more", {"--epochs", "1", "--model", setting.folder / "out"});
  REQUIRE(more.status == 0);
  CHECK(lines_of(more.out)[0].at("loss") < lines[0].at("loss").get<double>());
}

TEST_CASE("the same seed trains the same bytes, another seed others") {
  test::test_device();
  const Setting setting;
  for (const char* out : {"a", "b"}) REQUIRE(setting.train(out).status == 0);
  CHECK(setting.model("a") == setting.model("b"));
  REQUIRE(setting.train("c", {"--seed", "5"}).status == 0);
  CHECK(setting.model("a") != setting.model("c"));
}

TEST_CASE("blocks that are computed again draw the same numbers again") {
  test::test_device();
  const Setting setting;
  const auto kept = setting.train("kept"), again = setting.train("again", {"--recompute"});
  REQUIRE(kept.status == 0);
  REQUIRE(again.status == 0);
  const auto one = lines_of(kept.out), other = lines_of(again.out);
  REQUIRE(one.size() == other.size());
  // To rounding: an activation that nothing keeps is computed in the product in front of it. Another mask
  // would change the loss by percents.
  for (size_t i = 0; i + 1 < one.size(); ++i) {
    CHECK_THAT(other[i].at("loss").get<double>(), WithinRel(one[i].at("loss").get<double>(), 1e-4));
  }
}

TEST_CASE(
    "vitrine train --precision f16 rounds what matrix units multiply, or says that there is nothing to "
    "gain") {
  test::test_device();
  const Setting setting;
  REQUIRE(setting.train("f32").status == 0);
  const auto result = setting.train("f16", {"--precision", "f16"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  const bool in_f32 = result.err.find("trains in f32") != std::string::npos;
  CHECK((setting.model("f16") == setting.model("f32")) == in_f32);
  CHECK_THAT(test::read_whole_file(setting.folder / "f16/training.json"),
             ContainsSubstring(R"("precision": "f16")"));
  check_failure(setting.train("f16", {"--precision", "f32", "--dtype", "f16", "--resume"}), 4,
                {R"(precision is "f16", expected "f32")"});
  check_failure(setting.train("f32", {"--dtype", "f16", "--resume"}), 4,
                {R"(precision is "f32", expected "f16")"});
}

TEST_CASE("vitrine train refuses bf16, and says what there is instead") {
  const Setting setting;
  test::check_failure(setting.train("out", {"--precision", "bf16"}), 2,
                      {"--precision", "found bf16, expected f32 or f16"});
  const Setting by_file(R"({"precision": "bf16"})");
  test::check_failure(by_file.train("out"), 4,
                      {"config.json", R"("precision" is "bf16", expected f32 or f16)"});
}

TEST_CASE("vitrine train changes fields of the configuration's model") {
  test::test_device();
  const Setting setting;
  const auto result = setting.train("out", {"--epochs", "1", "--set", "depth=1", "--set", "mlp_hidden=24"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  const std::string model = setting.model("out");
  CHECK(model.find("blocks.0.mlp.fc1.weight") != std::string::npos);
  CHECK(model.find("blocks.1.") == std::string::npos);
  CHECK_THAT(test::read_whole_file(setting.folder / "out/config.json"),
             ContainsSubstring("\"mlp_hidden\": 24"));
  // It goes on with these fields alone.
  check_failure(setting.train("out", {"--epochs", "1", "--set", "depth=1", "--resume"}), 4,
                {"checkpoint.safetensors", "mlp_hidden"});
  check_failure(setting.train("other", {"--set", "deepness=1"}), 2, {"deepness"});
}

TEST_CASE("training that is killed at any moment goes on to the same bytes") {
  test::test_device();
  const Setting setting;
  REQUIRE(setting.train("whole").status == 0);
  std::mt19937 random(7);
  // Where it reaches its end before ten were killed, another one begins.
  int killed = 0;
  for (int training = 0; killed < 10; ++training) {
    const std::string out = "out" + std::to_string(training);
    train_through_kills(setting, out, random, killed, 10);
    CHECK(setting.model(out) == setting.model("whole"));
    REQUIRE(training < 20);
  }
}

TEST_CASE("Ctrl-C saves and says how to go on") {
  test::test_device();
  const Setting setting;
  REQUIRE(setting.train("whole", {"--epochs", "40"}).status == 0);
  test::RunningCommand command(setting.arguments("out", {"--epochs", "40"}));
  while (std::ranges::count(command.out_so_far(), '\n') < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  command.send(SIGINT);
  const test::CommandResult stopped = command.wait();
  INFO(stopped.err);
  CHECK(stopped.status == 1);
  CHECK(std::ranges::count(stopped.err, '\n') == 1);
  CHECK_THAT(stopped.err, ContainsSubstring("stopped in epoch") && ContainsSubstring("of 40") &&
                              ContainsSubstring("--resume"));
  check_failure(setting.train("out", {"--epochs", "40"}), 2, {"holds a training already", "--resume"});
  // The settings beside the checkpoint are the configuration's with the flags'.
  const auto rest =
      test::run_command({VITRINE_PROGRAM, "train", "--resume", "--data", setting.folder.path().string(),
                         "--config", setting.folder / "out/training.json", "--out", setting.folder / "out"});
  INFO(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(setting.model("out") == setting.model("whole"));
  // The lines of both processes are those of one.
  const auto first = lines_of(stopped.out), second = lines_of(rest.out);
  CHECK(first.size() + second.size() == 41);
}

TEST_CASE("a configuration is not overwritten by a training's settings") {
  Setting setting;
  const std::string own = test::read_whole_file(setting.config);
  std::filesystem::create_directory(setting.folder / "out");
  setting.config = setting.folder.file("out/training.json", own);
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--resume"}})
    check_failure(setting.train("out", more), 2, {"training.json", "another folder"});
  CHECK(test::read_whole_file(setting.config) == own);
  // Nor by the model that is trained.
  std::filesystem::create_directory(setting.folder / "model");
  setting.config = setting.folder.file("model/config.json", own);
  check_failure(setting.train("model"), 2, {"config.json", "another --out"});
  CHECK(test::read_whole_file(setting.config) == own);
}

TEST_CASE("a checkpoint of something else is refused") {
  test::test_device();
  const Setting setting;
  REQUIRE(setting.train("out", {"--epochs", "2"}).status == 0);
  check_failure(setting.train("out", {"--epochs", "2", "--lr", "0.5", "--resume"}), 4,
                {"checkpoint.safetensors", "lr is 0.01, expected 0.5"});
  write_pictures(setting.folder, "train", 90, 3);
  check_failure(setting.train("out", {"--epochs", "2", "--resume"}), 4, {"100 samples", "90 samples"});
  const std::string whole = test::read_whole_file(setting.folder / "out/checkpoint.safetensors");
  setting.folder.file("out/checkpoint.safetensors", whole.substr(0, whole.size() / 2));
  check_failure(setting.train("out", {"--epochs", "2", "--resume"}), 4, {"checkpoint.safetensors"});
}

TEST_CASE("vitrine train says what is wrong with its files") {
  const Setting setting;
  const std::string data = setting.folder.path().string(), out = setting.folder / "out";
  const auto train = [&](const std::string& config) {
    const std::string file = setting.folder.file("bad.json", config);
    return test::run_command({VITRINE_PROGRAM, "train", "--data", data, "--config", file, "--out", out});
  };
  check_failure(train("{"), 4, {"bad.json"});
  check_failure(train("{}"), 4, {"bad.json", "model"});
  check_failure(train(R"({"model": {"classes": 4}, "learning_rate": 1})"), 4, {"bad.json", "learning_rate"});
  check_failure(train(R"({"model": {"classes": 4}, "optimizer": "lion"})"), 4,
                {"optimizer", "lion", "sgd, adam, adamw"});
  check_failure(train(R"({"model": {"classes": 4, "channels": 1}, "data": {"mean": [1, 2]}})"), 4,
                {"mean", "one a channel"});
  check_failure(train(R"({"model": {"classes": 4, "channels": 1, "image_size": 28, "patch_size": 7}})"), 4,
                {"12 x 12", "28 x 28"});
  check_failure(train(R"({"model": {"classes": 3, "channels": 1, "image_size": 12, "patch_size": 6}})"), 4,
                {"label"});
  check_failure(
      test::run_command({VITRINE_PROGRAM, "train", "--data", out, "--config", setting.config, "--out", out}),
      4, {"out"});
  CHECK(!std::filesystem::exists(out));
}

TEST_CASE("vitrine train names what timm's config.json asks of a training in vain") {
  const Setting setting;
  ViTConfig model;
  for (const char* field :
       {"image_size=12", "patch_size=6", "channels=1", "dim=16", "depth=2", "heads=2", "classes=4"}) {
    set_field(model, field);
  }
  std::vector<TensorToWrite> tensors;
  const std::vector<float> zeros(16 * 64);
  for (const Parameter& parameter : parameters_of(model)) {
    for (const FilePart& part : file_parts(parameter, model, {&family_named("timm"), ""}, {})) {
      const auto values = std::span(zeros).first(parameter.shape.elements());
      tensors.push_back({part.name, FileDType::f32, part.shape, std::as_bytes(values)});
    }
  }
  std::filesystem::create_directory(setting.folder / "timm");
  write_safetensors(setting.folder / "timm/model.safetensors", tensors);
  setting.folder.file("timm/config.json", R"({"architecture": "vit_tiny_patch16_224", "num_classes": 4,
      "model_args": {"img_size": 12, "patch_size": 6, "in_chans": 1, "embed_dim": 16, "depth": 2, "num_heads": 2,
                     "drop_rate": 0.25, "attn_drop_rate": 0.125}})");
  const std::string config = setting.folder.file(
      "fine.json", R"({"model": {"image_size": 12, "patch_size": 6, "channels": 1, "dim": 16,
      "depth": 2, "heads": 2, "classes": 4, "position_resize": "bicubic_antialias", "attention_dropout": 0.125}})");
  // Told before a device is looked for.
  const auto result =
      test::run_command({VITRINE_PROGRAM, "train", "--data", setting.folder.path().string(), "--config",
                         config, "--model", setting.folder / "timm", "--out", setting.folder / "out"},
                        {{"VK_DRIVER_FILES", test::no_driver_files()}, {"VITRINE_DEVICE", ""}});
  INFO(result.err);
  CHECK(result.status == 3);
  CHECK_THAT(result.err, ContainsSubstring("warning") && ContainsSubstring("\"drop_rate\" is 0.25"));
  CHECK_THAT(result.err, !ContainsSubstring("attn_drop_rate"));
}

}  // namespace vitrine
