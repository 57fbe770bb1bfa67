// Updates whose gradients are not finite: what is left out, and that nothing else is.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"
#include "train/trainer.h"

namespace vitrine {
namespace {

constexpr uint64_t batch = 3;

TrainConfig small_config(Optimizer optimizer, uint64_t accumulation, double clip_norm) {
  TrainConfig config{.optimizer = optimizer,
                     .lr = 0.01,
                     .weight_decay = 0.1,
                     .clip_norm = clip_norm,
                     .batch_size = batch,
                     .accumulation = accumulation};
  ViTConfig& model = config.model;
  model.image_height = model.image_width = 6;
  model.patch_height = model.patch_width = 3;
  model.channels = 1;
  model.dim = 12;
  model.depth = 1;
  model.heads = 2;
  model.mlp_hidden = 20;
  model.classes = 5;
  config.validate("the test's configuration");
  return config;
}

struct Outcome {
  std::vector<std::vector<float>> buffers;
  TrainerCounts counts;
  std::vector<BatchResult> results;
};

// What makes a batch's gradients no numbers; the losses are numbers where weights alone are poisoned.
enum class Poison : uint8_t { label, nan_pixel, infinite_pixel, infinite_weight, nan_weight };

// The batch of this number; that of -1 is poisoned: with a label that no class has, unless told otherwise.
void fill(const Trainer::Slot& slot, int which, Poison poison = Poison::label) {
  const auto number = static_cast<uint32_t>(which < 0 ? 77 : which);
  for (size_t p = 0; p < slot.images.size(); ++p) {
    slot.images[p] = static_cast<float>((p * 37 + number * 101) % 64) / 32 - 1;
  }
  for (size_t s = 0; s < batch; ++s) slot.labels[s] = (number * 3 + static_cast<uint32_t>(s)) % 5;
  if (which >= 0) return;
  constexpr float infinity = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  switch (poison) {
    case Poison::label:
      slot.labels[1] = 5;
      break;
    case Poison::nan_pixel:
      slot.images[41] = nan;
      break;
    case Poison::infinite_pixel:
      slot.images[41] = -infinity;
      break;
    case Poison::infinite_weight:
      slot.weights[1] = infinity;
      break;
    case Poison::nan_weight:
      slot.weights[2] = nan;
      break;
  }
}

// Trains on these batches. With `waits` nothing is ever under way.
Outcome train(const TrainConfig& config, const std::vector<int>& batches, bool waits = false,
              Poison poison = Poison::label) {
  Trainer trainer(*test::test_device().pipelines, config, 100);
  trainer.initialize(*random_weights(config.model, 1));
  Outcome outcome;
  std::vector<BatchResult> some;
  const auto take = [&] {
    trainer.take_results(some);
    outcome.results.insert(outcome.results.end(), some.begin(), some.end());
  };
  for (size_t i = 0; i < batches.size(); ++i) {
    fill(trainer.slot(), batches[i], poison);
    trainer.submit(batch, batch * config.accumulation, (i + 1) % config.accumulation == 0);
    if (waits) trainer.finish();
    take();
  }
  trainer.finish();
  take();
  outcome.counts = trainer.counts();
  for (const std::string& name : trainer.buffers()) {
    trainer.read(name, outcome.buffers.emplace_back(trainer.layout().elements));
  }
  return outcome;
}

TEST_CASE("an update with a gradient that is not finite leaves everything as if it had not been") {
  test::test_device();
  struct Kind {
    const char* name;
    Optimizer optimizer;
    double clip_norm;
  };
  for (const Kind& kind : test::of_turn<Kind>({{"AdamW", Optimizer::adamw, 0},
                                               {"AdamW, clipped", Optimizer::adamw, 1},
                                               {"Adam", Optimizer::adam, 0},
                                               {"SGD", Optimizer::sgd, 0.5}})) {
    for (const uint64_t accumulation : {1, 2}) {
      INFO(kind.name << ", accumulation " << accumulation);
      const TrainConfig config = small_config(kind.optimizer, accumulation, kind.clip_norm);
      // Where gradients of several are summed, one that is poisoned takes its group along.
      const std::vector<int> poisoned = accumulation == 1
                                            ? std::vector<int>{-1, 0, 1, -1, -1, 2, 3, -1, 4}
                                            : std::vector<int>{9, -1, 0, 1, -1, 8, -1, 7, 2, 3, 4, 5};
      const std::vector<int> clean =
          accumulation == 1 ? std::vector<int>{0, 1, 2, 3, 4} : std::vector<int>{0, 1, 2, 3, 4, 5};
      const Outcome with = train(config, poisoned), without = train(config, clean);
      CHECK(with.buffers == without.buffers);
      for (const auto& values : with.buffers) {
        for (const float value : values) REQUIRE(std::isfinite(value));
      }
      const uint64_t skipped = accumulation == 1 ? 4 : 3;
      CHECK(with.counts == TrainerCounts{poisoned.size() / accumulation, poisoned.size(), skipped});
      CHECK(without.counts.skipped == 0);
      // What is told of each batch and each update.
      REQUIRE(with.results.size() == poisoned.size());
      bool group_is_good = true;
      for (size_t i = 0; i < poisoned.size(); ++i) {
        INFO("batch " << i);
        const bool good = poisoned[i] >= 0, last = (i + 1) % accumulation == 0;
        group_is_good &= good;
        CHECK(std::isfinite(with.results[i].loss) == good);
        REQUIRE(with.results[i].update.has_value() == last);
        if (!last) continue;
        CHECK(with.results[i].update->skipped() == !group_is_good);
        if (group_is_good) CHECK(with.results[i].update->gradient_norm > 0);
        group_is_good = true;
      }
      // When the host gets to know of it changes nothing.
      CHECK(train(config, poisoned, true).buffers == with.buffers);
    }
  }
  test::require_no_validation_messages();
}

TEST_CASE("a pixel or a sample's weight that is no number takes its update along, and nothing else") {
  test::test_device();
  for (const bool mixed : {false, true}) {
    TrainConfig config = small_config(Optimizer::adamw, 1, 1);
    config.ema_decay = 0;
    if (mixed) config.recipe.mixup.mixup_alpha = 0.8;
    // Mixing draws by the number of the pass, so the batch that is left out comes last, or there is no
    // mixing.
    const std::vector<int> poisoned = mixed ? std::vector<int>{0, 1, 2, -1} : std::vector<int>{0, 1, -1, 2},
                           clean{0, 1, 2};
    const Outcome without = train(config, clean);
    for (const Poison poison :
         {Poison::nan_pixel, Poison::infinite_pixel, Poison::infinite_weight, Poison::nan_weight}) {
      INFO("poison " << static_cast<int>(poison) << ", mixed " << mixed);
      const Outcome with = train(config, poisoned, false, poison);
      CHECK(with.buffers == without.buffers);
      CHECK(with.counts == TrainerCounts{4, 4, 1});
      const bool by_weight = poison == Poison::infinite_weight || poison == Poison::nan_weight;
      for (size_t i = 0; i < with.results.size(); ++i) {
        CHECK(with.results[i].update->skipped() == (poisoned[i] < 0));
        CHECK(std::isfinite(with.results[i].loss) == (poisoned[i] >= 0 || by_weight));
      }
    }
  }
  test::require_no_validation_messages();
}

TEST_CASE("a sample of twice the weight counts as two") {
  test::test_device();
  const TrainConfig config = small_config(Optimizer::sgd, 1, 0);
  const auto gradients = [&](const std::vector<float>& weights) {
    Trainer trainer(*test::test_device().pipelines, config, 100);
    trainer.initialize(*random_weights(config.model, 1));
    const Trainer::Slot slot = trainer.slot();
    fill(slot, 3);
    std::ranges::copy(weights, slot.weights.begin());
    trainer.submit(batch, batch, true);
    trainer.finish();
    std::vector<float> values(trainer.layout().elements);
    trainer.read(trainer.gradients(), values);
    // The next batch's are 1 again.
    CHECK(std::ranges::count(trainer.slot().weights, 1.0f) == batch);
    return values;
  };
  const std::vector<float> first = gradients({1, 0, 0}), all = gradients({1, 1, 1}),
                           twice = gradients({2, 1, 1});
  REQUIRE(first != all);
  for (size_t i = 0; i < all.size(); ++i)
    REQUIRE(std::abs(twice[i] - (all[i] + first[i])) <= 1e-6f + 1e-5f * std::abs(twice[i]));
}

TEST_CASE("a training goes on with its count of updates") {
  test::test_device();
  const TrainConfig config = small_config(Optimizer::adamw, 1, 0);
  const std::vector<int> batches{0, -1, 1, 2, -1, 3, 4};
  const Outcome whole = train(config, batches);
  // A second trainer takes over in the middle, as from a checkpoint.
  const Outcome first = train(config, {0, -1, 1});
  Trainer trainer(*test::test_device().pipelines, config, 100);
  trainer.initialize(*random_weights(config.model, 2));
  const auto names = trainer.buffers();
  for (size_t i = 0; i < names.size(); ++i) trainer.write(names[i], first.buffers[i]);
  trainer.set_counts(first.counts);
  CHECK(trainer.counts() == TrainerCounts{3, 3, 1});
  for (size_t i = 3; i < batches.size(); ++i) {
    fill(trainer.slot(), batches[i]);
    trainer.submit(batch, batch, true);
  }
  trainer.finish();
  CHECK(trainer.counts() == whole.counts);
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<float> values(trainer.layout().elements);
    trainer.read(names[i], values);
    CHECK(values == whole.buffers[i]);
  }
}

}  // namespace
}  // namespace vitrine
