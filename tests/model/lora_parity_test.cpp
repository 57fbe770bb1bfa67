// LoRA against PEFT in float64: the losses of ten steps, all that was trained, and adapters that PEFT wrote.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "model/files/adapter.h"
#include "model/files/parameter_values.h"
#include "model/files/safetensors.h"
#include "model/files/weights.h"
#include "model/run/runner.h"
#include "runtime/util/error.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"
#include "train/lora.h"
#include "train/run/training_run.h"
#include "train/start_model.h"
#include "train/trainer.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

const fs::path parity = fs::path(VITRINE_TEST_DATA) / "parity";

struct Fixture {
  fs::path folder, base;
  StartModel start;
  TrainConfig config;

  explicit Fixture(const std::string& name)
      : folder(parity / "lora" / name),
        base(parity / "fixtures" / name),
        start(start_model(open_model({.model = base}), {5, {}}, HeadInit::normal, 7)) {
    nlohmann::json json = read_json(folder / "train.json");
    json["lora"]["family"] = start.naming.family->name;
    json["lora"]["prefix"] = start.naming.prefix;
    config = train_config_of(json, name, &start.config);
  }
};

std::vector<float> normalized(const NpyFile& file, const TrainConfig& config) {
  const std::vector<uint8_t> bytes = file.values<uint8_t>();
  const std::vector<float> table = preprocessing_of(config).values(config.model.channels);
  const uint64_t plane = config.model.image_height * config.model.image_width;
  std::vector<float> values;
  for (size_t i = 0; i < bytes.size(); ++i) {
    values.push_back(table[i / plane % config.model.channels * 256 + bytes[i]]);
  }
  return values;
}

double error_of(std::span<const float> found, std::span<const float> wanted) {
  REQUIRE(found.size() == wanted.size());
  double off = 0, size = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double difference = double{found[i]} - double{wanted[i]};
    off += difference * difference;
    size += double{wanted[i]} * double{wanted[i]};
  }
  REQUIRE(size > 0);
  return std::sqrt(off / size);
}

std::vector<float> floats_of(ConstantSource& source, const Parameter& parameter) {
  std::vector<float> values(parameter.shape.elements());
  read_floats(source, parameter, values);
  return values;
}

// Trains as the fixture says, and compares every loss.
void train(Trainer& trainer, const Fixture& fixture) {
  const TrainConfig& config = fixture.config;
  const NpyFile file(fixture.folder / "images.npy");
  const std::vector<float> images = normalized(file, config);
  const std::vector<uint8_t> labels = NpyFile(fixture.folder / "labels.npy").values<uint8_t>();
  const nlohmann::json expected = read_json(fixture.folder / "expected.json");
  const uint64_t count = labels.size(), elements = images.size() / count,
                 steps = expected.at("losses").size();
  REQUIRE(steps == 10);
  trainer.initialize(*fixture.start.weights);
  std::vector<BatchResult> results;
  for (uint64_t step = 0; step < steps; ++step) {
    const Trainer::Slot slot = trainer.slot();
    const uint64_t at = step * config.batch_size % count;
    std::copy_n(images.begin() + static_cast<ptrdiff_t>(at * elements), config.batch_size * elements,
                slot.images.begin());
    std::copy_n(labels.begin() + static_cast<ptrdiff_t>(at), config.batch_size, slot.labels.begin());
    trainer.submit(config.batch_size, config.batch_size, true);
    trainer.finish();
    trainer.take_results(results);
    const double wanted = expected.at("losses")[step], found = results.back().loss;
    INFO("loss of step " << step << ": " << found << " instead of " << wanted);
    CHECK(std::abs(found - wanted) <= expected.at("limits").at("loss").get<double>() * wanted);
  }
}

constexpr const char* fixtures[] = {"timm_vit", "hf_vit"};

}  // namespace

TEST_CASE("ten steps of LoRA are PEFT's, and so is what is saved of them") {
  test::TestDevice& device = test::test_device();
  std::vector<std::pair<const char*, bool>> ways;
  for (const char* name : fixtures) {
    for (const bool recompute : {false, true}) ways.emplace_back(name, recompute);
  }
  for (const auto& [name, recompute] : test::of_turn(ways)) {
    INFO(name << (recompute ? ", blocks computed again" : ""));
    const Fixture fixture(name);
    Trainer trainer(*device.pipelines, fixture.config, 10,
                    {.recompute = recompute, .frozen = fixture.start.weights.get()});
    train(trainer, fixture);
    // Under the names that PEFT gave them.
    const test::TemporaryFolder out;
    write_model(out.path(), trainer, {}, fs::absolute(fixture.base).string());
    const SafetensorsFile ours(out.path() / adapter_weights_name),
        theirs(fixture.folder / "adapter" / adapter_weights_name);
    REQUIRE(ours.tensors().size() == theirs.tensors().size());
    const double limit = read_json(fixture.folder / "expected.json").at("limits").at("tensors");
    for (const TensorInfo& wanted : theirs.tensors()) {
      const TensorInfo* found = ours.find(wanted.name);
      INFO(wanted.name);
      REQUIRE(found);
      CHECK(found->shape == wanted.shape);
      CHECK(error_of(ours.floats(*found), theirs.floats(wanted)) <= limit);
    }
    // What isn't in there is the base's to the bit.
    for (const Parameter& parameter : parameters_of(fixture.config.model)) {
      if (parameter.name.starts_with("head")) continue;
      CHECK(trainer.parameter(parameter) == floats_of(*fixture.start.weights, parameter));
    }
  }
}

TEST_CASE("an adapter that PEFT wrote is opened with its base, and gives PEFT's logits") {
  test::TestDevice& device = test::test_device();
  for (const char* name : fixtures) {
    INFO(name);
    const Fixture fixture(name);
    const Model model = open_model({.model = fixture.folder / "adapter"});
    CHECK(model.config.classes == 5);
    CHECK(model.adapter_base.ends_with(name));
    const std::vector<float> images = normalized(NpyFile(fixture.folder / "images.npy"), fixture.config);
    const std::vector<float> wanted = NpyFile(fixture.folder / "logits.npy").values<float>();
    const uint64_t batch = fixture.config.batch_size;
    Runner runner(*device.pipelines, model);
    const std::vector<float> found = runner.run(std::span(images).first(images.size() / 30 * batch), batch);
    CHECK(error_of(found, wanted) <= read_json(fixture.folder / "expected.json").at("limits").at("logits"));
    // Without the adapter they are others.
    const Model base = open_model({.model = fixture.base});
    const std::vector<Parameter> parameters = parameters_of(model.config);
    size_t changed = 0;
    for (const Parameter& parameter : parameters) {
      if (parameter.name.starts_with("head")) continue;
      changed += floats_of(*model.constants, parameter) != floats_of(*base.constants, parameter);
    }
    const LowRankPairs pairs = low_rank_of(fixture.config);
    CHECK(changed == pairs.layers.size());
  }
}

TEST_CASE("a model begins as its base does, and a pair's dropout is of training alone") {
  test::TestDevice& device = test::test_device();
  Fixture fixture("hf_vit");
  std::vector<double> losses;
  for (const double dropout : {0.0, 0.5}) {
    fixture.config.lora.dropout = dropout;
    Trainer trainer(*device.pipelines, fixture.config, 10, {.frozen = fixture.start.weights.get()});
    trainer.initialize(*fixture.start.weights);
    std::vector<BatchResult> results;
    double last = 0;
    for (int step = 0; step < 2; ++step) {
      const Trainer::Slot slot = trainer.slot();
      for (size_t i = 0; i < slot.images.size(); ++i) slot.images[i] = static_cast<float>(i % 7) / 7;
      for (size_t i = 0; i < slot.labels.size(); ++i) slot.labels[i] = static_cast<uint32_t>(i % 5);
      trainer.submit(fixture.config.batch_size, fixture.config.batch_size, true);
      trainer.finish();
      trainer.take_results(results);
      last = results.back().loss;
      if (step == 0) losses.push_back(last);
    }
    losses.push_back(last);
  }
  // B is zeros before the first update: what A was given is no matter.
  CHECK(losses[0] == losses[2]);
  CHECK(losses[1] != losses[3]);
}

TEST_CASE("adapters that can't be followed are refused in one sentence") {
  const fs::path good = parity / "lora/timm_vit/adapter";
  const std::string base = fs::absolute(parity / "fixtures/timm_vit").string();
  nlohmann::json config = read_json(good / adapter_config_name);
  config["base_model_name_or_path"] = base;
  const std::string weights = test::read_whole_file(good / adapter_weights_name);
  const auto message = [&](const nlohmann::json& changes, const std::string& stored) {
    const test::TemporaryFolder folder;
    nlohmann::json changed = config;
    if (!changes.is_null()) changed.merge_patch(changes);
    folder.file(std::string(adapter_config_name), changed.dump());
    folder.file(std::string(adapter_weights_name), stored);
    try {
      open_model({.model = folder.path()});
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      const std::string what = error.what();
      CHECK(what.find('\n') == std::string::npos);
      return what;
    }
    return std::string("nothing");
  };
  CHECK(message({}, weights) == "nothing");
  CHECK_THAT(message({{"base_model_name_or_path", "/nowhere"}}, weights),
             ContainsSubstring("the base model \"/nowhere\" isn't there"));
  CHECK_THAT(message({{"base_model_name_or_path", nullptr}}, weights),
             ContainsSubstring("base_model_name_or_path"));
  CHECK_THAT(message({{"base_model_name_or_path", fs::absolute(good).string()}}, weights),
             ContainsSubstring("is an adapter itself"));
  CHECK_THAT(message({{"init_lora_weights", "pissa"}}, weights), ContainsSubstring("init_lora_weights"));
  // A training's folder, whose best/ is what is opened.
  const test::TemporaryFolder run;
  nlohmann::json itself = config;
  itself["base_model_name_or_path"] = fs::absolute(run.path()).string();
  run.file("best/" + std::string(adapter_config_name), itself.dump());
  run.file("best/" + std::string(adapter_weights_name), weights);
  for (const fs::path& opened : {run / "best", run.path()}) {
    CHECK_THROWS_MATCHES(open_model({.model = opened}), Error,
                         Catch::Matchers::MessageMatches(ContainsSubstring("is an adapter itself")));
  }
  CHECK_THAT(message({{"base_model_name_or_path", fs::absolute(parity / "fixtures/timm_registers").string()}},
                     weights),
             ContainsSubstring("beside this layer") || ContainsSubstring("expected"));
  CHECK_THAT(message({{"peft_type", "IA3"}}, weights), ContainsSubstring("\"peft_type\" is \"IA3\""));
  CHECK_THAT(message({{"use_dora", true}}, weights), ContainsSubstring("use_dora"));
  CHECK_THAT(message({{"bias", "all"}}, weights), ContainsSubstring("\"bias\" is \"all\""));
  CHECK_THAT(message({{"lora_alpha", "much"}}, weights), ContainsSubstring("lora_alpha"));
  CHECK_THAT(message({{"alpha_pattern", {{"qkv", 3}}}}, weights), ContainsSubstring("alpha_pattern"));
  CHECK_THAT(message({}, weights.substr(0, weights.size() - 1)),
             ContainsSubstring("adapter_model.safetensors"));
  const auto renamed = [&](const std::string& from, const std::string& to) {
    REQUIRE(from.size() == to.size());
    std::string changed = weights;
    const size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    return changed.replace(at, from.size(), to);
  };
  CHECK_THAT(message({}, renamed("blocks.1.attn.qkv.lora_A", "blocks.1.attn.qqq.lora_A")),
             ContainsSubstring("one beside a linear layer of a block"));
  CHECK_THAT(message({}, renamed("blocks.1.attn.qkv.lora_A", "blocks.1.attn.qkv.lora_C")),
             ContainsSubstring("a pair lora_A and lora_B"));
  CHECK_THAT(message({}, renamed("[3,36]", "[36,3]")), ContainsSubstring("[rank, 36] beside this layer"));
  CHECK_THAT(message({}, renamed("head.bias", "head.sias")), ContainsSubstring("the head \"head\""));
  CHECK_THAT(message({}, renamed("base_model.model.head.bias", "base_nodel.model.head.bias")),
             ContainsSubstring("begins with"));
}

}  // namespace vitrine
