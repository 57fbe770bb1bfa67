// A batch that doesn't fit a card's memory is cut by itself, to the same training but for rounding; and a
// device that is lost is named.
#include <volk.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/util/error.h"
#include "tests/pretend/pretend_device.h"
#include "tests/support/temporary_folder.h"
#include "train/automatic_parts.h"

namespace vitrine::test {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr uint64_t batch = 64;

class Stripes : public Dataset {
 public:
  Stripes() {
    name_ = "stripes";
    shape_ = {1, 24, 24};
    classes_ = 4;
    for (uint32_t i = 0; i < batch + 5; ++i) labels_.push_back(i % 4);
  }
  void read(uint64_t i, std::span<uint8_t> pixels) const override {
    for (size_t p = 0; p < pixels.size(); ++p)
      pixels[p] = static_cast<uint8_t>((p / 24 / 6 == i % 4 ? 150 : 0) + (p * 31 + i * 17) % 97);
  }
};

TrainConfig small_config() {
  TrainConfig config{
      .optimizer = Optimizer::sgd, .lr = 0.05, .momentum = 0, .epochs = 1, .batch_size = batch};
  config.model = ViTConfig{.image_height = 24,
                           .image_width = 24,
                           .patch_height = 3,
                           .patch_width = 3,
                           .channels = 1,
                           .dim = 48,
                           .depth = 3,
                           .heads = 3,
                           .mlp_hidden = 190,
                           .classes = 4}
                     .resolved();
  return config;
}

std::vector<double> losses_of(PipelineStore& pipelines, const TrainConfig& config, const Dataset& data) {
  TrainingRun run(pipelines, config, data, {});
  std::vector<double> losses;
  CHECK(run.run({.progress = [&](const TrainingProgress& p) { losses.push_back(p.batch_loss); }},
                std::atomic<bool>(false)));
  losses.push_back(run.test(data).loss);
  return losses;
}

}  // namespace

TEST_CASE("a batch that a card's memory can't hold is cut until it fits, and trained on all the same") {
  const TemporaryFolder folder;
  // With the kernels of the driver itself, which compile quickly.
  nlohmann::json profile = nlohmann::json::parse(read_whole_file(profile_path("own_memory")));
  profile["heaps"][0]["MiB"] = 32;
  profile["heaps"][0]["budget_MiB"] = 24;
  profile["heaps"][2]["MiB"] = 16;
  profile["heaps"][2]["budget_MiB"] = 14;
  const OpenedDevice card =
      open_pretended(std::filesystem::path(folder.file("small_card.json", profile.dump())));
  const OpenedDevice plain = open_plain_with_capabilities_of(card.device->capabilities());
  const Stripes data;
  TrainConfig config = small_config();
  Device* const cards[] = {card.device.get()};
  const FittingParts fitting = fitting_parts(config, data, cards, {}, 1);
  INFO(fitting.said);
  REQUIRE(fitting.parts > 1);
  CHECK(fitting.parts <= batch / 2);
  CHECK_THAT(fitting.said,
             ContainsSubstring("training on 64 pictures at once takes") &&
                 ContainsSubstring("is cut into parts of " + std::to_string(batch / fitting.parts)) &&
                 ContainsSubstring("--recompute"));
  // What fits is left whole, and nothing is said.
  TrainConfig less = config;
  less.batch_size = batch / fitting.parts;
  const FittingParts whole = fitting_parts(less, data, cards, {}, 1);
  CHECK(whole.parts == 1);
  CHECK(whole.said.empty());
  // It is not by an estimate alone that the whole batch doesn't fit.
  CHECK_THROWS_AS(losses_of(*card.pipelines, config, data), Error);
  card.messages->take();  // of the memory that wasn't there

  TrainConfig cut = config;
  cut.parts = fitting.parts;
  const std::vector<double> in_parts = losses_of(*card.pipelines, cut, data),
                            at_once = losses_of(*plain.pipelines, config, data);
  REQUIRE(in_parts.size() == 3);
  REQUIRE(at_once.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK_THAT(in_parts[i], Catch::Matchers::WithinRel(at_once[i], 1e-4));
  CHECK(in_parts[2] != in_parts[0]);
  card.require_silence();
  plain.require_silence();
}

TEST_CASE("a device that is lost ends a training on several, by its name") {
  const OpenedDevice one = open_pretended("own_memory"), two = open_pretended("own_memory");
  const Stripes data;
  TrainConfig config = small_config();
  config.batch_size = 8;
  config.parts = 2;
  TrainingRun run(*one.pipelines, config, data, {.devices = {one.pipelines.get(), two.pipelines.get()}});
  int updates = 0;
  const auto lose = [&] {
    if (++updates == 2) {
      two.device->vk().vkQueueSubmit2 = [](VkQueue, uint32_t, const VkSubmitInfo2*, VkFence) {
        return VK_ERROR_DEVICE_LOST;
      };
    }
  };
  try {
    run.run({.between = lose}, std::atomic<bool>(false));
    FAIL("a training went on without its device");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::failed);
    CHECK_THAT(error.what(), ContainsSubstring("device 2 of 2, "));
  }
}

}  // namespace vitrine::test
