// vitrine train --model without a configuration: a model that was trained before is taught other classes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "images/png_writer.h"
#include "model/files/safetensors.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

const test::Path digits = test::Path(VITRINE_TEST_DATA).parent_path() / "assets/digits";

// Grey pictures of two or three classes: a bright band above, below, or in the middle.
void write_bands(const test::TemporaryFolder& folder, const std::string& to,
                 const std::vector<std::string>& names, uint32_t side) {
  std::mt19937 random(1);
  std::vector<uint8_t> pixels(side * side);
  for (const char* part : {"train", "test"}) {
    for (size_t label = 0; label < names.size(); ++label) {
      const test::Path at = std::filesystem::path(folder / to) / part / names[label];
      std::filesystem::create_directories(at);
      for (int i = 0; i < 12; ++i) {
        for (uint32_t p = 0; p < pixels.size(); ++p) {
          pixels[p] =
              static_cast<uint8_t>(random() % 60 + (p / side * names.size() / side == label ? 180 : 0));
        }
        write_png(at / (std::to_string(i) + ".png"), side, side, 1, pixels);
      }
    }
  }
}

struct Bands {
  test::TemporaryFolder folder;

  Bands() { write_bands(folder, "data", {"high", "low"}, 28); }
  test::CommandResult train(const std::string& out, const std::vector<std::string>& more,
                            const std::string& data = "data") const {
    return test::run_command(arguments(out, more, data));
  }
  std::vector<std::string> arguments(const std::string& out, const std::vector<std::string>& more,
                                     const std::string& data = "data") const {
    std::vector<std::string> all{VITRINE_PROGRAM, "train", "--data",     folder / data,  "--model",
                                 digits.string(), "--out", folder / out, "--batch-size", "8"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string model(const std::string& out) const {
    return test::read_whole_file(folder / (out + "/model.safetensors"));
  }
};

nlohmann::json last_line(const std::string& text) {
  std::istringstream stream(text);
  std::string line, last;
  while (std::getline(stream, line)) last = line;
  return nlohmann::json::parse(last);
}

}  // namespace

TEST_CASE("vitrine train teaches a model other classes without a configuration") {
  test::test_device();
  const Bands bands;
  const auto result =
      bands.train("out", {"--epochs", "6", "--lr", "0.002", "--no-flip", "--no-resized-crop"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK_THAT(result.err, ContainsSubstring("54 tensors kept") && ContainsSubstring("head.weight [2, 64]") &&
                             ContainsSubstring("the model's is for 10 classes, the data has 2") &&
                             ContainsSubstring("dropped: the head of 10 classes"));
  CHECK(last_line(result.out).at("test_accuracy") >= 0.9);
  const auto settings = nlohmann::json::parse(test::read_whole_file(bands.folder / "out/training.json"));
  CHECK(settings.at("epochs") == 6);
  CHECK(settings.at("lr") == 0.002);
  CHECK(settings.at("layer_decay") == 0.75);
  CHECK(settings.at("weight_decay") == 0.05);
  CHECK(settings.at("label_smoothing") == 0.1);
  CHECK(settings.at("model").at("classes") == 2);
  CHECK(settings.at("data").contains("preprocess"));

  // What was learned is a model as any other, whose head stays for the same classes.
  const auto again = test::run_command({VITRINE_PROGRAM, "train", "--data", bands.folder / "data", "--model",
                                        bands.folder / "out", "--out", bands.folder / "more", "--epochs", "1",
                                        "--train", "last:1", "--ema-decay", "0.5"});
  INFO(again.err);
  REQUIRE(again.status == 0);
  CHECK_THAT(again.err, ContainsSubstring("56 tensors kept") && !ContainsSubstring("new:") &&
                            ContainsSubstring("stay as they are"));
  CHECK(last_line(again.out).at("test_accuracy") >= 0.9);
  // The same names in another order are other classes.
  write_bands(bands.folder, "other", {"low", "middle"}, 28);
  const auto other =
      test::run_command({VITRINE_PROGRAM, "train", "--data", bands.folder / "other", "--model",
                         bands.folder / "out", "--out", bands.folder / "other_out", "--epochs", "1"});
  REQUIRE(other.status == 0);
  CHECK_THAT(other.err, ContainsSubstring("its class 0 is \"high\", the data's \"low\""));
}

TEST_CASE("a head alone is trained on features that are computed once, as it is on pictures") {
  test::test_device();
  const Bands bands;
  const std::vector<std::string> same{"--epochs", "3", "--seed", "4"};
  auto cached = same, slow = same;
  cached.insert(cached.end(), {"--train", "head"});
  slow.insert(slow.end(),
              {"--train", "head.*", "--lr", "0.005", "--layer-decay", "1", "--no-flip", "--no-resized-crop"});
  cached.insert(cached.end(), {"--lr", "0.005"});
  const auto one = bands.train("cached", cached), other = bands.train("slow", slow);
  INFO(one.err << other.err);
  REQUIRE(one.status == 0);
  REQUIRE(other.status == 0);
  CHECK_THAT(one.err,
             ContainsSubstring("trains 2 tensors of 130 numbers") && ContainsSubstring("is computed once"));
  CHECK_THAT(other.err, ContainsSubstring("trains 2 tensors") && !ContainsSubstring("computed once"));
  CHECK_THAT(last_line(one.out).at("test_loss").get<double>(),
             WithinRel(last_line(other.out).at("test_loss").get<double>(), 1e-4));
  // The trunk is the one that it began with, to the bit.
  const SafetensorsFile before(digits / "model.safetensors"),
      after(std::filesystem::path(bands.folder / "cached/model.safetensors"));
  size_t same_tensors = 0;
  for (const TensorInfo& tensor : before.tensors()) {
    if (tensor.name.starts_with("head")) continue;
    REQUIRE(after.find(tensor.name));
    CHECK(std::ranges::equal(before.bytes(tensor), after.bytes(*after.find(tensor.name))));
    ++same_tensors;
  }
  CHECK(same_tensors == 54);
  // Where pictures change, features do.
  const auto flipped = bands.train("flipped", {"--epochs", "1", "--train", "head", "--flip"});
  REQUIRE(flipped.status == 0);
  CHECK_THAT(flipped.err, ContainsSubstring("in every epoch"));
}

TEST_CASE("a part of a model that is trained goes on to the same bytes, with the same weights beside it") {
  test::test_device();
  const Bands bands;
  const std::vector<std::string> trained{"--epochs",    "6",  "--train", "blocks.3.mlp.*,head.*",
                                         "--ema-decay", "0.9"};
  REQUIRE(bands.train("whole", trained).status == 0);
  auto often = trained;
  often.insert(often.end(), {"--resume", "--checkpoint-seconds", "0"});
  std::mt19937 random(3);
  for (int killed = 0;;) {
    test::RunningCommand command(bands.arguments("out", often));
    if (killed < 3) {
      std::this_thread::sleep_for(std::chrono::microseconds(300'000 + random() % 600'000));
      command.kill();
    }
    const test::CommandResult result = command.wait();
    INFO(result.err);
    if (result.status == 0) break;
    REQUIRE(result.status == test::killed_status);
    ++killed;
  }
  CHECK(bands.model("out") == bands.model("whole"));
  // The weights that stay are no part of the checkpoint: others are noticed.
  const std::string settings = bands.folder / "whole/training.json";
  check_failure(test::run_command({VITRINE_PROGRAM, "train", "--data", bands.folder / "data", "--config",
                                   settings, "--out", bands.folder / "whole", "--resume"}),
                4, {"weights that aren't trained"});
}

TEST_CASE("pictures of another size resample the positions") {
  test::test_device();
  const Bands bands;
  const auto result = bands.train("out", {"--epochs", "1", "--image-size", "42"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK_THAT(result.err, ContainsSubstring("positions resampled from 4x4 to 6x6 patches"));
  CHECK_THAT(test::read_whole_file(bands.folder / "out/config.json"),
             ContainsSubstring("\"image_height\": 42"));
}

TEST_CASE(
    "a recipe without a model takes the one to begin with, and one with another model names what differs") {
  test::test_device();
  const Bands bands;
  const std::string recipe =
      bands.folder.file("recipe.json", R"({"optimizer": "sgd", "lr": 0.01, "train": "last:1",
      "head_init": "zero", "batch_size": 8, "data": {"mean": [0.5], "std": [0.5]}})");
  const auto result = bands.train("out", {"--config", recipe, "--set", "dropout=0.1"});
  INFO(result.err);
  REQUIRE(result.status == 0);
  CHECK_THAT(test::read_whole_file(bands.folder / "out/training.json"),
             ContainsSubstring("\"dropout\": 0.1") && ContainsSubstring("\"train\": \"last:1\""));
  check_failure(bands.train("bad", {"--config", recipe, "--set", "heads=8"}), 4,
                {"recipe.json", "heads is 8, expected 4"});
  const std::string other =
      bands.folder.file("other.json", R"({"model": {"image_size": 28, "patch_size": 7, "channels": 1,
      "dim": 48, "depth": 4, "heads": 4, "classes": 2}})");
  check_failure(bands.train("bad", {"--config", other}), 4, {"other.json", "dim is 48, expected 64"});
  CHECK_FALSE(std::filesystem::exists(bands.folder / "bad"));
}

TEST_CASE("vitrine train says what can't be trained") {
  const Bands bands;
  check_failure(bands.train("out", {"--train", "blocks.9.*"}), 2, {"--train", "blocks.9.*"});
  check_failure(bands.train("out", {"--train", "last:5"}), 2, {"last:5", "4 blocks"});
  check_failure(bands.train("out", {"--train", "last:"}), 2, {"last:N"});
  check_failure(bands.train("out", {"--train", "blocks.3.*"}), 2,
                {"the new head.weight", "blocks.3.*,head*"});
  check_failure(bands.train("out", {"--classes", "1"}), 2, {"--classes"});
  check_failure(bands.train("out", {"--layer-decay", "1.5"}), 4, {"layer_decay"});
  check_failure(bands.train("out", {"--image-size", "6"}), 2, {"--image-size"});
  check_failure(test::run_command({VITRINE_PROGRAM, "train", "--data", bands.folder / "data", "--out",
                                   bands.folder / "out"}),
                2, {"--config", "--model"});
  CHECK_FALSE(std::filesystem::exists(bands.folder / "out"));
}

}  // namespace vitrine
