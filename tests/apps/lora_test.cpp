// vitrine train --train lora: an adapter beside a model, which all commands take, and vitrine merge.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/files/safetensors.h"
#include "tests/apps/train_setting.h"
#include "tests/support/command.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;
using test::lines_of, test::TrainSetting;
namespace fs = std::filesystem;

// A trained model to begin with, and the data that it was trained on.
struct LoraSetting : TrainSetting {
  LoraSetting() : TrainSetting(R"({"accumulation": 1, "model": {"dropout": 0, "stochastic_depth": 0}})") {
    const auto result = train("base", {"--epochs", "1"});
    INFO(result.err);
    REQUIRE(result.status == 0);
    recipe(R"({"rank": 3, "alpha": 6, "dropout": 0.2})");
  }
  // Beside the model that it began with, whose head stays, but for `head`.
  std::string recipe(const std::string& lora) const {
    const nlohmann::json json{{"train", "lora"},      {"lora", nlohmann::json::parse(lora)},
                              {"optimizer", "adamw"}, {"lr", 0.02},
                              {"batch_size", 16},     {"epochs", 3},
                              {"accumulation", 2},    {"ema_decay", 0.9},
                              {"layer_decay", 0.8},   {"schedule", "cosine"},
                              {"clip_norm", 1},       {"data", {{"flip", true}, {"crop_padding", 1}}}};
    return folder.file("lora.json", json.dump());
  }
  std::vector<std::string> arguments_of(const std::string& out, const std::vector<std::string>& more) const {
    std::vector<std::string> all{VITRINE_PROGRAM, "train", "--data",     folder.path(), "--model",
                                 folder / "base", "--out", folder / out, "--config",    folder / "lora.json"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  test::CommandResult lora(const std::string& out, const std::vector<std::string>& more = {}) const {
    return test::run_command(arguments_of(out, more));
  }
  nlohmann::json eval(const std::string& model) const {
    const auto result =
        test::run_command({VITRINE_PROGRAM, "eval", "--data", folder.path(), "--model", folder / model});
    INFO(result.err);
    REQUIRE(result.status == 0);
    return lines_of(result.out).back();
  }
  std::string bytes(const std::string& file) const { return test::read_whole_file(folder / file); }
};

}  // namespace

TEST_CASE("vitrine train --train lora saves an adapter, which commands open and merge makes a model of") {
  test::test_device();
  const LoraSetting setting;
  const auto trained = setting.lora("out", {"--validate-every", "epoch"});
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  CHECK_THAT(trained.err, ContainsSubstring("trains 16 tensors of 1536 numbers"));
  const double loss = lines_of(trained.out).back().at("test_loss");
  for (const char* folder : {"out/best", "out/last"}) {
    INFO(folder);
    CHECK(!fs::exists(setting.folder / folder / "model.safetensors"));
    CHECK(fs::exists(setting.folder / folder / "adapter_model.safetensors"));
  }
  const auto config = nlohmann::json::parse(setting.bytes("out/best/adapter_config.json"));
  CHECK(config.at("base_model_name_or_path") == (setting.folder / "base").string());
  CHECK(config.at("r") == 3);
  CHECK(config.at("modules_to_save").is_null());
  CHECK_THAT(setting.eval("out").at("test_loss").get<double>(), WithinAbs(loss, 1e-6));
  CHECK(setting.eval("base").at("test_loss") != setting.eval("out").at("test_loss"));

  const auto merged = test::run_command({VITRINE_PROGRAM, "merge", "--model", setting.folder / "out", "--out",
                                         setting.folder / "new/merged", "--json"});
  INFO(merged.err);
  REQUIRE(merged.status == 0);
  CHECK(lines_of(merged.out).back().at("base") == (setting.folder / "base").string());
  CHECK(setting.eval("new/merged") == setting.eval("out"));
  // Only what pairs lie beside is another than in the base.
  {
    const SafetensorsFile base(setting.folder / "base/model.safetensors"),
        model(setting.folder / "new/merged/model.safetensors");
    REQUIRE(base.tensors().size() == model.tensors().size());
    size_t changed = 0;
    for (const TensorInfo& tensor : base.tensors()) {
      const TensorInfo* other = model.find(tensor.name);
      REQUIRE(other);
      const bool same = base.floats(tensor) == model.floats(*other);
      changed += !same;
      INFO(tensor.name);
      if (!same) CHECK_THAT(tensor.name, ContainsSubstring("attn") || ContainsSubstring("mlp"));
    }
    CHECK(changed == 8);
  }
  test::check_failure(test::run_command({VITRINE_PROGRAM, "merge", "--model", setting.folder / "base",
                                         "--out", setting.folder / "again"}),
                      2, {"is a model already"});

  // Another base of the same shape is none that it was trained beside.
  const LoraSetting other;
  fs::remove_all(setting.folder / "base");
  test::check_failure(test::run_command({VITRINE_PROGRAM, "eval", "--data", setting.folder.path(), "--model",
                                         setting.folder / "out"}),
                      4, {"isn't there"});
  REQUIRE(other.train("changed", {"--epochs", "1", "--seed", "9"}).status == 0);
  fs::copy(other.folder / "changed", setting.folder / "base", fs::copy_options::recursive);
  test::check_failure(test::run_command({VITRINE_PROGRAM, "eval", "--data", setting.folder.path(), "--model",
                                         setting.folder / "out"}),
                      4, {"expected the base that it was trained with"});
}

TEST_CASE("a training with LoRA that was killed ends with the bytes of one that wasn't") {
  test::test_device();
  const LoraSetting setting;
  REQUIRE(setting.lora("whole").status == 0);
  const std::string whole = setting.bytes("whole/adapter_model.safetensors");
  std::mt19937 random(3);
  int killed = 0;
  test::train_through_kills(setting.arguments_of("out", {"--resume", "--checkpoint-seconds", "0"}), random,
                            killed, 3);
  CHECK(setting.bytes("out/adapter_model.safetensors") == whole);
  CHECK(setting.bytes("out/adapter_config.json") == setting.bytes("whole/adapter_config.json"));
  // With other settings it isn't the same training.
  setting.recipe(R"({"rank": 3, "alpha": 7, "dropout": 0.2})");
  test::check_failure(setting.lora("out", {"--resume"}), 4, {"lora/alpha"});
  test::check_failure(setting.lora("out", {"--resume", "--train", "head"}), 4, {"train"});
}

TEST_CASE("one device and two come to the same adapter") {
  test::test_device();
  const LoraSetting setting;
  // 100 samples in batches of 14: the last one has 2, fewer than there are parts.
  for (const char* devices : {"0", "0,0"}) {
    const auto result =
        setting.lora(devices, {"--devices", devices, "--batch-size", "14", "--precision", "f16"});
    INFO(devices << ": " << result.err);
    REQUIRE(result.status == 0);
  }
  CHECK(setting.bytes("0,0/adapter_model.safetensors") == setting.bytes("0/adapter_model.safetensors"));
  // Which were trained, so that the comparison means something.
  REQUIRE(setting.lora("less", {"--devices", "0,0", "--batch-size", "14", "--epochs", "1"}).status == 0);
  CHECK(setting.bytes("less/adapter_model.safetensors") != setting.bytes("0/adapter_model.safetensors"));
}

TEST_CASE("what LoRA can't be asked for is said by name") {
  test::test_device();
  const LoraSetting setting;
  const auto fails = [&](const std::string& lora, const std::vector<std::string>& more, int status,
                         const std::string& expected) {
    INFO(lora);
    setting.recipe(lora);
    test::check_failure(setting.lora("out", more), status, {expected});
    CHECK(!fs::exists(setting.folder / "out"));
  };
  fails("{}", {"--train", "lora:0"}, 2, "lora:R with a rank R, at least 1");
  fails("{}", {"--train", "lora:x"}, 2, "lora:R with a rank R");
  fails("{}", {"--train", "lora:17"}, 2, "found a rank of 17, expected 1 to 16");
  fails(R"({"rank": 0})", {}, 4, "\"rank\" is 0");
  fails(R"({"rank": 17})", {}, 4, "found a rank of 17, expected 1 to 16");
  fails(R"({"alpha": 0})", {}, 4, "\"alpha\"");
  fails(R"({"dropout": 1})", {}, 4, "\"dropout\"");
  fails(R"({"targets": ["query"]})", {}, 4, "blocks.0.attn.qkv");
  fails(R"({"targets": "qkv"})", {}, 4, "a list of layers' names");
  fails(R"({"ranks": 8})", {}, 4, "\"ranks\" is not known");
  fails(R"({"head": false})", {"--classes", "5"}, 2, "leaves the new head.weight");
  test::check_failure(setting.train("nothing", {"--train", "lora"}), 2, {"lora without --model"});

  setting.recipe("{}");
  REQUIRE(setting.lora("adapter", {"--epochs", "1", "--classes", "5"}).status == 0);
  const auto config = nlohmann::json::parse(setting.bytes("adapter/adapter_config.json"));
  CHECK(config.at("modules_to_save") == nlohmann::json{"head"});
  auto on_adapter = setting.arguments_of("twice", {});
  on_adapter[5] = setting.folder / "adapter";
  test::check_failure(test::run_command(on_adapter), 2, {"is an adapter itself"});
}

}  // namespace vitrine
