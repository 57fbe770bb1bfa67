// A model learns and infers on the make-believe discrete card, in memory that the host can't map, with the
// kernels for GPUs; and to the same bits on the driver below, which is told to be that card and has its own
// memory.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>

#include "model/files/weights.h"
#include "model/run/runner.h"
#include "runtime/util/philox.h"
#include "tests/pretend/pretend_device.h"
#include "tests/support/op_test.h"
#include "train/trainer.h"

namespace vitrine::test {
namespace {

// What of a plan decides a result's bits.
std::vector<std::string> kernels_of(const Plan& plan) {
  std::vector<std::string> kernels;
  for (const Step& step : plan.steps) {
    std::string text = step.kernel + ":" + step.configuration + " " +
                       std::string(step.dispatch.shader->shader) + "/" +
                       std::string(step.dispatch.shader->variant);
    for (const auto& constant : step.dispatch.constants)
      text += " " + std::string(constant.name) + "=" + std::to_string(constant.value);
    kernels.push_back(text);
  }
  return kernels;
}

void check_for_gpus(const Plan& plan) {
  REQUIRE_FALSE(plan.steps.empty());
  for (const Step& step : plan.steps) {
    INFO(step.kernel);
    CHECK_FALSE(step.kernel.starts_with("cpu_"));
  }
}

struct Trained {
  std::vector<std::string> kernels;
  std::vector<double> losses;
  std::vector<std::vector<float>> buffers;
  bool operator==(const Trained&) const = default;
};

// Four blocks of 12 heads, and no width that fits a tile: 7 numbers a head, 151 in the MLP, 50 tokens.
Trained train(PipelineStore& pipelines) {
  TrainConfig config{
      .lr = 0.003, .weight_decay = 0.05, .clip_norm = 1, .label_smoothing = 0.1, .batch_size = 3};
  config.model = ViTConfig{.image_height = 21,
                           .image_width = 21,
                           .patch_height = 3,
                           .patch_width = 3,
                           .dim = 84,
                           .depth = 4,
                           .heads = 12,
                           .mlp_hidden = 151,
                           .classes = 7}
                     .resolved();
  constexpr uint64_t updates = 5;
  Trainer trainer(pipelines, config, updates);
  check_for_gpus(trainer.step_plan());
  const auto weights = random_weights(config.model, 9);
  trainer.initialize(*weights);
  Trained trained{.kernels = kernels_of(trainer.step_plan())};
  std::vector<BatchResult> results;
  const auto take = [&] {
    trainer.take_results(results);
    for (const BatchResult& result : results) trained.losses.push_back(result.loss);
  };
  for (uint64_t update = 0; update < updates; ++update) {
    const Trainer::Slot slot = trainer.slot();
    const auto values = random_tensor({slot.images.size()}, DType::f32, 100 + update).values;
    std::ranges::copy(values, slot.images.begin());
    for (size_t i = 0; i < slot.labels.size(); ++i)
      slot.labels[i] = static_cast<uint32_t>((i * 3 + update) % 7);
    trainer.submit(3, 3, true);
    take();
  }
  trainer.finish();
  take();
  for (const std::string& name : trainer.buffers()) {
    trained.buffers.emplace_back(trainer.layout().elements);
    trainer.read(name, trained.buffers.back());
  }
  return trained;
}

}  // namespace

TEST_CASE("four blocks of 12 heads learn the same bits on the discrete card as without the layer") {
  const OpenedDevice card = open_pretended("discrete_card");
  const OpenedDevice plain = open_plain_with_capabilities_of(card.device->capabilities());
  REQUIRE_FALSE(card.device->capabilities().unified_memory());
  REQUIRE(plain.device->capabilities().unified_memory());
  const Trained there = train(*card.pipelines), here = train(*plain.pipelines);
  CHECK(there.kernels == here.kernels);
  REQUIRE(there.losses.size() == 5);
  for (const double loss : there.losses) CHECK(std::isfinite(loss));
  CHECK(there.losses.front() != there.losses.back());
  CHECK(there.losses == here.losses);
  REQUIRE(there.buffers.size() >= 3);
  for (size_t i = 0; i < there.buffers.size(); ++i) {
    CHECK(std::memcmp(there.buffers[i].data(), here.buffers[i].data(),
                      here.buffers[i].size() * sizeof(float)) == 0);
  }
  card.require_silence();
  plain.require_silence();
}

TEST_CASE("ViT-B/16 infers the same bits on the discrete card as without the layer") {
  const OpenedDevice card = open_pretended("discrete_card");
  const OpenedDevice plain = open_plain_with_capabilities_of(card.device->capabilities());
  const Model model = open_model({.arch = "vit_base_patch16_224", .seed = 5});
  const auto noise = random_tensor({1, 3, 224, 224}, DType::f32, 4).values;
  const std::vector<float> image(noise.begin(), noise.end());
  const auto infer = [&](const OpenedDevice& opened) {
    Runner runner(*opened.pipelines, model);
    check_for_gpus(runner.plan(1));
    return std::pair{kernels_of(runner.plan(1)), runner.run(image, 1)};
  };
  const auto there = infer(card), here = infer(plain);
  CHECK(there.first == here.first);
  REQUIRE(there.second.size() == 1000);
  CHECK(std::ranges::all_of(there.second, [](float logit) { return std::isfinite(logit); }));
  CHECK(std::ranges::minmax(there.second).max > std::ranges::minmax(there.second).min);
  CHECK(std::memcmp(there.second.data(), here.second.data(), here.second.size() * sizeof(float)) == 0);
  card.require_silence();
  plain.require_silence();
}

TEST_CASE("the software driver's own kernels infer the same bits with the memory of a discrete card") {
  const OpenedDevice apart = open_pretended("own_memory");
  const OpenedDevice plain = open_plain_with_capabilities_of(apart.device->capabilities());
  const Model model = open_model({.arch = "deit_tiny_distilled_patch16_224", .seed = 5, .set = {"depth=2"}});
  const auto noise = random_tensor({3, 3, 224, 224}, DType::f32, 4).values;
  const std::vector<float> images(noise.begin(), noise.end());
  const auto infer = [&](const OpenedDevice& opened) {
    Runner runner(*opened.pipelines, model);
    return std::pair{kernels_of(runner.plan(2)), runner.run(images, 2)};
  };
  const auto there = infer(apart), here = infer(plain);
  CHECK(there.first == here.first);
  CHECK(there.second == here.second);
  apart.require_silence();
  plain.require_silence();
}

}  // namespace vitrine::test
