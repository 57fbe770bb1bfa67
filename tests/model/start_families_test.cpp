// Models of every family taught other classes: begun, trained for a step, saved, and opened again.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/files/parameter_values.h"
#include "model/files/weights.h"
#include "model/run/runner.h"
#include "runtime/util/json.h"
#include "runtime/util/npy.h"
#include "tests/support/op_test.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"
#include "train/run/training_run.h"
#include "train/start_model.h"

namespace vitrine {
namespace {

void check_family(const std::string& name, const std::string& trained) {
  CAPTURE(name, trained);
  const std::filesystem::path fixture = std::filesystem::path(VITRINE_TEST_DATA) / "parity/fixtures" / name;
  const nlohmann::json meta = read_json(fixture / "meta.json");
  const std::string file = meta.at("model");
  const std::vector<float> images = NpyFile(fixture / "input.npy").values<float>();
  StartModel start = start_model(open_model({.model = file == "." ? fixture : fixture / file,
                                             .set = meta.at("set").get<std::vector<std::string>>()}),
                                 {3, {"a", "b", "c"}}, HeadInit::normal, 1);
  INFO(start.said);
  CHECK_FALSE(start.new_parameters.empty());
  TrainConfig config{.lr = 0.01, .batch_size = 2, .train = trained};
  config.model = start.config;
  config.validate(name);
  Trainer trainer(*test::test_device().pipelines, config, 4, {.frozen = start.weights.get()});
  trainer.initialize(*start.weights);
  std::vector<BatchResult> results;
  double first = 0, last = 0;
  for (int step = 0; step < 4; ++step) {
    const Trainer::Slot slot = trainer.slot();
    REQUIRE(images.size() >= slot.images.size());
    std::copy_n(images.begin(), slot.images.size(), slot.images.begin());
    slot.labels[0] = 0;
    slot.labels[1] = 2;
    trainer.submit(2, 2, true);
    trainer.finish();
    trainer.take_results(results);
    (step == 0 ? first : last) = results.at(0).loss;
  }
  CHECK(last < first);
  bool given = false;
  std::vector<float> tested;
  trainer.test(
      [&](const Trainer::Slot& slot) -> std::optional<uint64_t> {
        if (std::exchange(given, true)) return std::nullopt;
        std::copy_n(images.begin(), slot.images.size(), slot.images.begin());
        slot.labels[0] = slot.labels[1] = 1;
        return 2;
      },
      [&](std::span<const float> rows, std::span<const uint32_t>) {
        tested.assign(rows.begin(), rows.end());
      });

  const test::TemporaryFolder folder;
  write_model(folder.path(), trainer, {"a", "b", "c"});
  const Model saved = open_model({.model = folder.path()});
  CHECK(saved.config == config.model);
  CHECK(saved.labels[2] == "c");
  Runner runner(*test::test_device().pipelines, saved, {});
  const std::vector<float> again = runner.run(std::span(images).first(2 * runner.image_elements()), 2);
  CHECK(test::relative_error(std::vector<double>(again.begin(), again.end()),
                             std::vector<double>(tested.begin(), tested.end())) <= 1e-5);
  // What isn't trained is as it was.
  if (trained == "all") return;
  const StartModel before = start_model(open_model({.model = file == "." ? fixture : fixture / file,
                                                    .set = meta.at("set").get<std::vector<std::string>>()}),
                                        {3, {"a", "b", "c"}}, HeadInit::normal, 1);
  for (const Parameter& parameter : parameters_of(config.model)) {
    if (!parameter.learned()) continue;
    std::vector<float> old(parameter.shape.elements()), now(parameter.shape.elements());
    read_floats(*before.weights, parameter, old);
    read_floats(*saved.constants, parameter, now);
    CAPTURE(parameter.name);
    CHECK((old == now) == !parameter.name.starts_with("head"));
  }
}

TEST_CASE("models of every family learn other classes") {
  test::test_device();
  for (const char* name : test::of_turn<const char*>(
           {"deit_distilled", "hf_clip_projection", "hf_siglip", "hf_dinov2_registers", "torchvision",
            "timm_representation", "timm_parallel_scaled", "timm_branches", "timm_cait"})) {
    check_family(name, "all");
  }
}

TEST_CASE("a head is put on towers that have none, and the tower stays as it is") {
  test::test_device();
  for (const char* name :
       test::of_turn<const char*>({"timm_headless", "hf_clip_vision", "timm_siglip", "timm_bf16", "myvit",
                                   "timm_differential", "timm_differential_parallel"}))
    check_family(name, "head");
}

}  // namespace
}  // namespace vitrine
