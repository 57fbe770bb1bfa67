// What f16 does to a training: next to nothing, and where it does more, that is said.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "runtime/util/error.h"
#include "tests/support/matrix_units.h"
#include "tests/support/system_fonts.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"
#include "train/digits/digit_files.h"
#include "train/run/training_run.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

// Digits of the machine's fonts.
std::filesystem::path digits(const test::TemporaryFolder& folder, uint32_t train) {
  write_digits(folder / "data", test::system_fonts(),
               {.train = train, .test = 3, .seed = 3, .distortion = 0.5});
  return folder / "data";
}

TrainConfig digit_config() {
  TrainConfig config{.lr = 1e-3,
                     .weight_decay = 0.05,
                     .clip_norm = 1,
                     .label_smoothing = 0.1,
                     .warmup_steps = 20,
                     .seed = 5};
  config.model = {.image_height = 28, .image_width = 28, .patch_height = 7, .patch_width = 7, .channels = 1};
  config.model.dim = 64;
  config.model.depth = 2;
  config.model.heads = 2;
  config.model.classes = 10;
  config.model.init = InitRule::torch;
  config.mean = {0.2};
  config.std = {0.3};
  config.batch_size = 16;
  return config;
}

// The plan with which a training's products are f16; skips where the device can't.
PlanOptions f16_plan(TrainConfig config) {
  config.precision = Precision::f16;
  PlanOptions plan;
  size_t without_block = 0;
  if (test::prefer_matrix_units(config, layout_of(config), plan, without_block) == 0)
    SKIP("the device has no matrix units that these products use");
  return plan;
}

// 50 updates an epoch; skips where that takes minutes.
struct LongTraining {
  test::TemporaryFolder folder;
  TrainConfig config = digit_config();
  PlanOptions in_f16 = f16_plan(config);
  std::unique_ptr<const Dataset> data;

  LongTraining() {
    if (test::computes_slowly()) SKIP("a CPU without kernels of its own takes minutes");
    data = open_dataset(digits(folder, 800), Split::train, dataset_options(config));
  }
};

// Random weights, with one bias of a great number.
class WithLargeBias final : public ConstantSource {
 public:
  WithLargeBias(const ViTConfig& config, std::string name, float value)
      : weights_(random_weights(config, 11)), name_(std::move(name)), value_(value) {}
  ConstantParts find(const std::string& name, const Shape& shape, DType dtype) override {
    if (name != name_) return weights_->find(name, shape, dtype);
    values_.assign(shape.elements(), value_);
    return {{DType::f32, std::as_bytes(std::span(values_))}};
  }

 private:
  std::unique_ptr<ConstantSource> weights_;
  std::string name_;
  float value_;
  std::vector<float> values_;
};

}  // namespace

TEST_CASE("200 updates in f16 have the losses of those in f32, to a hundredth") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  LongTraining training;
  test::skip_until_turn(4);
  TrainConfig& config = training.config;
  config.epochs = 4;
  const auto losses_of = [&](Precision precision, const PlanOptions& plan) {
    config.precision = precision;
    TrainingRun run(pipelines, config, *training.data, {.plan = plan});
    CHECK(run.trainer().rounds() == (precision == Precision::f16));
    std::vector<double> losses;
    CHECK(run.run({.progress = [&](const TrainingProgress& p) { losses.push_back(p.batch_loss); }},
                  std::atomic<bool>(false)));
    return losses;
  };
  const std::vector<double> in_f32 = losses_of(Precision::f32, {}),
                            rounded = losses_of(Precision::f16, training.in_f16);
  REQUIRE(in_f32.size() == 200);
  REQUIRE(rounded.size() == 200);
  CHECK(in_f32 != rounded);
  // Means over 20 updates, which is what a curve is drawn of.
  constexpr ptrdiff_t window = 20;
  double first = 0, last = 0, furthest = 0;
  for (ptrdiff_t at = 0; at + window <= 200; ++at) {
    const auto mean = [&](const std::vector<double>& losses) {
      return std::accumulate(losses.begin() + at, losses.begin() + at + window, 0.0) / window;
    };
    const double wanted = mean(in_f32);
    if (at == 0) first = wanted;
    last = wanted;
    furthest = std::max(furthest, std::abs(mean(rounded) - wanted) / wanted);
  }
  INFO("from " << first << " to " << last << ", at most " << furthest << " off");
  CHECK(last < 0.7 * first);
  CHECK(furthest <= 0.01);
  test::require_no_validation_messages();
}

TEST_CASE("a training that f16 has no range for says which product is why, and f32 trains it") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const test::TemporaryFolder folder;
  TrainConfig config = digit_config();
  config.batch_size = 4;
  config.max_skipped_steps = 3;
  const PlanOptions in_f16 = f16_plan(config);
  const auto data = open_dataset(digits(folder, 24), Split::train, dataset_options(config));
  // What the second block's MLP multiplies by its second matrix is then about as large.
  WithLargeBias weights(config.model, "blocks.1.mlp.fc1.bias", 1e5f);
  for (const uint64_t accumulation : {1, 2}) {
    INFO("accumulation " << accumulation);
    config.accumulation = accumulation;
    config.precision = Precision::f16;
    std::vector<std::string> said;
    TrainingRun run(pipelines, config, *data, {.out = folder / "out", .weights = &weights, .plan = in_f16});
    REQUIRE(run.trainer().rounds());
    std::string error;
    try {
      run.run({.notice = [&](const std::string& sentence) { said.push_back(sentence); }},
              std::atomic<bool>(false));
    } catch (const Error& e) {
      error = e.what();
    }
    REQUIRE(said.size() == 1);
    CHECK_THAT(said[0], ContainsSubstring("f16 is why: in f32 the loss of batch 1 in epoch 1 is finite") &&
                            ContainsSubstring("blocks.1.mlp.fc2 multiplies numbers up to 1e+05") &&
                            ContainsSubstring("--precision f32"));
    CHECK_THAT(error, ContainsSubstring("3 updates in a row") && ContainsSubstring("blocks.1.mlp.fc2"));
    std::filesystem::remove_all(folder / "out");

    // f32 holds them, as the sentence says.
    config.precision = Precision::f32;
    TrainingRun in_f32(pipelines, config, *data, {.weights = &weights});
    uint64_t skipped = 0;
    CHECK(in_f32.run({.epoch = [&](const EpochReport& report) { skipped += report.skipped_steps; },
                      .notice = [&](const std::string& sentence) { said.push_back(sentence); }},
                     std::atomic<bool>(false)));
    CHECK(skipped == 0);
    CHECK(said.size() == 1);
  }
  test::require_no_validation_messages();
}

TEST_CASE("what isn't finite in f32 either is not put down to f16") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const test::TemporaryFolder folder;
  TrainConfig config = digit_config();
  config.batch_size = 4;
  config.max_skipped_steps = 2;
  config.precision = Precision::f16;
  const PlanOptions in_f16 = f16_plan(config);
  const auto data = open_dataset(digits(folder, 24), Split::train, dataset_options(config));
  WithLargeBias weights(config.model, "blocks.1.mlp.fc1.bias", INFINITY);
  TrainingRun run(pipelines, config, *data, {.weights = &weights, .plan = in_f16});
  std::string error;
  try {
    run.run({.notice = [](const std::string& sentence) { FAIL(sentence); }}, std::atomic<bool>(false));
  } catch (const Error& e) {
    error = e.what();
  }
  CHECK_THAT(error, ContainsSubstring("2 updates in a row") && ContainsSubstring("a lower lr"));
}

TEST_CASE("a finite loss that rises is said to, in f16 alone") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  LongTraining training;
  test::skip_until_turn(4);
  TrainConfig& config = training.config;
  config.epochs = 4;
  config.warmup_steps = 200;
  config.lr = 1;  // at which the loss is ten times as large as at the beginning
  const auto said_of = [&](Precision precision, const PlanOptions& plan) {
    config.precision = precision;
    TrainingRun run(pipelines, config, *training.data, {.plan = plan});
    std::vector<std::string> said;
    CHECK(run.run({.notice = [&](const std::string& sentence) { said.push_back(sentence); }},
                  std::atomic<bool>(false)));
    return said;
  };
  const std::vector<std::string> said = said_of(Precision::f16, training.in_f16);
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], ContainsSubstring("the loss rises") && ContainsSubstring("--precision f32"));
  CHECK(said_of(Precision::f32, {}).empty());
}

}  // namespace vitrine
