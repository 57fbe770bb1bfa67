// `vitrine train` on several devices, which are the same one opened several times, and on parts of batches:
// the bytes that come out don't tell how many devices there were.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/apps/train_setting.h"
#include "tests/support/command.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using test::lines_of, test::TrainSetting;
namespace fs = std::filesystem;

std::string stored(const TrainSetting& setting, const std::string& file) {
  return test::read_whole_file(setting.folder / file);
}

std::string tensors_of(const std::string& checkpoint) {
  // Behind the header, whose length is that of the time's digits.
  uint64_t size = 0;
  std::memcpy(&size, checkpoint.data(), sizeof size);
  return checkpoint.substr(8 + size);
}

struct Kind {
  const char* name;
  const char* changes;
};

}  // namespace

TEST_CASE("one, two and three devices come to the same bytes, whatever is trained") {
  test::test_device();
  // 100 samples in batches of 14: the last one has 2, fewer than there are parts.
  for (const Kind& kind :
       {Kind{"fine-tuning", R"({"batch_size": 14, "epochs": 2})"},
        Kind{"whole batches, and the last group has fewer",
             R"({"batch_size": 14, "accumulation": 5, "epochs": 2, "optimizer": "sgd"})"},
        Kind{"a recipe", R"({"batch_size": 14, "accumulation": 1, "epochs": 2, "ema_decay": 0.9, "repeats": 2,
             "sampling": "balanced", "precision": "f16", "layer_decay": 0.7,
             "mixup": {"mixup_alpha": 0.8, "cutmix_alpha": 1.0, "mode": "elem"},
             "random_erasing": {"probability": 0.7, "mode": "pixel"}})"},
        Kind{"a head on features", R"({"batch_size": 14, "epochs": 2, "train": "head", "accumulation": 1,
             "model": {"dropout": 0, "stochastic_depth": 0}, "data": {"flip": false, "crop_padding": 0}})"}}) {
    INFO(kind.name);
    const TrainSetting setting(kind.changes);
    for (const char* devices : {"0", "0,0", "0,0,0"}) {
      const auto result = setting.train(devices, {"--devices", devices});
      INFO(devices << ": " << result.err);
      REQUIRE(result.status == 0);
    }
    const std::string one = setting.model("0");
    CHECK(setting.model("0,0") == one);
    CHECK(setting.model("0,0,0") == one);
    const std::string checkpoint = tensors_of(stored(setting, "0/checkpoint.safetensors"));
    CHECK(tensors_of(stored(setting, "0,0/checkpoint.safetensors")) == checkpoint);
    CHECK(tensors_of(stored(setting, "0,0,0/checkpoint.safetensors")) == checkpoint);
    // The device itself adds up as the host does, where it is alone.
    const auto parts = nlohmann::json::parse(stored(setting, "0/training.json")).value("parts", 1);
    REQUIRE(setting.train("alone", {"--parts", std::to_string(parts)}).status == 0);
    CHECK(setting.model("alone") == one);
    // And it isn't the same as a batch that is whole, so the comparison means something.
    if (parts > 1) {
      REQUIRE(setting.train("whole").status == 0);
      CHECK(setting.model("whole") != one);
    }
  }
}

TEST_CASE("a training goes on with another number of devices, to the same bytes") {
  test::test_device();
  const TrainSetting setting(R"({"epochs": 4, "schedule": "constant", "accumulation": 1})");
  REQUIRE(setting.train("whole", {"--devices", "0,0", "--parts", "5"}).status == 0);
  const std::vector<std::vector<std::string>> turns{{"--epochs", "1", "--devices", "0", "--parts", "5"},
                                                    {"--epochs", "2", "--devices", "0,0,0"},
                                                    {"--epochs", "3"},
                                                    {"--epochs", "4", "--devices", "0,0"}};
  for (std::vector<std::string> turn : turns) {
    turn.emplace_back("--resume");
    const auto result = setting.train("out", turn);
    INFO(result.err);
    REQUIRE(result.status == 0);
  }
  CHECK(setting.model("out") == setting.model("whole"));
  CHECK(stored(setting, "out/training.json") == stored(setting, "whole/training.json"));
  // How a batch is cut is what the numbers hang on.
  check_failure(setting.train("out", {"--parts", "4", "--resume"}), 4,
                {"checkpoint.safetensors", "parts is 5, expected 4"});
  check_failure(setting.train("out", {"--parts", "1", "--resume"}), 4,
                {"checkpoint.safetensors", "parts is 5, expected nothing"});
}

TEST_CASE("a training on two devices that is killed at any moment goes on to the same bytes") {
  test::test_device();
  const TrainSetting setting;
  REQUIRE(setting.train("whole", {"--devices", "0"}).status == 0);
  std::mt19937 random(11);
  int killed = 0;
  for (int training = 0; killed < 6; ++training) {
    const std::string out = "out" + std::to_string(training);
    test::train_through_kills(setting, out, random, killed, 6, {"--devices", "0,0"});
    CHECK(setting.model(out) == setting.model("whole"));
  }
}

TEST_CASE("pictures of any size go to several devices part by part, to the same bytes") {
  test::test_device();
  const TrainSetting setting(R"({"batch_size": 14, "accumulation": 1, "epochs": 2,
      "data": {"random_resized_crop": {}, "crop_padding": 0, "rand_augment": "rand-m9-p1-mstd0.5-inc1"}})");
  for (const char* devices : {"0", "0,0"}) {
    const auto result = setting.train(devices, {"--devices", devices});
    INFO(result.err);
    REQUIRE(result.status == 0);
  }
  CHECK(setting.model("0") == setting.model("0,0"));
}

TEST_CASE("a batch in parts is the same batch") {
  test::test_device();
  // Without what a step draws by its own number.
  const TrainSetting setting(R"({"batch_size": 15, "accumulation": 1, "epochs": 1,
      "optimizer": "sgd", "momentum": 0, "model": {"dropout": 0, "stochastic_depth": 0},
      "mixup": {"mixup_alpha": 0.8, "cutmix_alpha": 1.0, "mode": "elem"},
      "random_erasing": {"probability": 0.7, "mode": "const"}})");
  const auto whole = setting.train("whole");
  INFO(whole.err);
  REQUIRE(whole.status == 0);
  for (const char* parts : {"2", "4", "15"}) {
    INFO(parts);
    const auto result = setting.train(std::string("parts") + parts, {"--parts", parts});
    INFO(result.err);
    REQUIRE(result.status == 0);
    const auto at_once = lines_of(whole.out), in_parts = lines_of(result.out);
    // Other samples in a batch, or mixed otherwise, would change it by percents.
    CHECK_THAT(in_parts[0].at("loss").get<double>(), WithinRel(at_once[0].at("loss").get<double>(), 1e-5));
    CHECK_THAT(in_parts[1].at("test_loss").get<double>(),
               WithinRel(at_once[1].at("test_loss").get<double>(), 1e-4));
  }
}

TEST_CASE("what --devices and --parts can't mean is said in one sentence") {
  test::test_device();
  const TrainSetting setting;
  check_failure(setting.train("out", {"--devices", "0,no such device"}), 3,
                {"no Vulkan device matches 'no such device'"});
  check_failure(setting.train("out", {"--devices", "0,,0"}), 2, {"--devices", "0,,0", "commas between them"});
  check_failure(setting.train("out", {"--devices", "0,0", "--device", "0"}), 2,
                {"--devices", "--device", "one of the two"});
  check_failure(setting.train("out", {"--parts", "17"}), 4, {"parts is 17", "as a batch has samples"});
  CHECK(!fs::exists(setting.folder / "out"));
  const auto idle = setting.train("idle", {"--devices", "0,0,0", "--parts", "1", "--epochs", "1"});
  CHECK(idle.status == 0);
  CHECK_THAT(idle.err, ContainsSubstring("of 3 devices only 2 have anything to do"));
}

}  // namespace vitrine
