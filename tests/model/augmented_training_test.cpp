// Pictures that chance changes on the device: as the libraries change them, and in trainings that go on.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <filesystem>
#include <map>

#include "images/png_writer.h"
#include "runtime/util/error.h"
#include "tests/support/augmentation_cases.h"
#include "tests/support/constants.h"
#include "tests/support/noise_picture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"
#include "train/augmentation_graph.h"
#include "train/data/augmentation_config.h"
#include "train/run/training_run.h"
#include "train/step_inputs.h"

namespace vitrine {
namespace {

using test::AugmentationCase;

// The cases of one size as a batch through the nodes of a step.
void check_batch(const std::vector<const AugmentationCase*>& cases) {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const uint32_t width = cases[0]->width, height = cases[0]->height;
  // Kinds and rooms for all of them.
  PictureAugmentation all{.rand_augment = RandAugment{.num_layers = 4},
                          .color_jitter = ColorJitter{.hue = {-0.5, 0.5}}};
  REQUIRE(all.operations() == 5);
  const auto graph = std::make_shared<Graph>();
  const ValueId pictures = graph->input("pictures", {cases.size(), height, width}, DType::u32);
  graph->output(append_picture_operations(*graph, all, pictures), "result");
  test::RandomConstants none(1);
  WeightStore weights(pipelines, none);
  Executable executable(weights, make_plan(graph, pipelines.device().capabilities()));
  auto pixels = input_as<uint32_t>(executable, "pictures", 0).begin(),
       words = input_as<uint32_t>(executable, operations_input, 0).begin();
  for (const AugmentationCase* one : cases) {
    pixels = std::ranges::copy(one->pixels, pixels).out;
    words = std::ranges::copy(operation_words(one->operations, 5, width, height), words).out;
  }
  executable.run();
  const std::span<const std::byte> bytes = executable.output(executable.output_index("result"), 0);
  for (size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i]->label);
    std::vector<uint32_t> result(size_t{width} * height);
    std::memcpy(result.data(), bytes.data() + i * result.size() * 4, result.size() * 4);
    CHECK(cases[i]->hash_of(result) == cases[i]->expected);
  }
}

TrainConfig small_config(uint64_t channels) {
  TrainConfig config{.lr = 0.01, .epochs = 2, .batch_size = 4};
  config.model = {.image_height = 24,
                  .image_width = 20,
                  .patch_height = 8,
                  .patch_width = 10,
                  .dim = 16,
                  .depth = 1,
                  .heads = 2,
                  .classes = 2};
  config.model.channels = channels;
  config.model = config.model.resolved();
  config.flip = true;
  return config;
}

// Noise, of the model's size and of others.
void make_pictures(const test::TemporaryFolder& folder, uint32_t channels) {
  uint64_t seed = 1;
  for (const char* split : {"train", "test"}) {
    for (const char* name : {"a/1", "a/2", "a/3", "b/1", "b/2", "b/3"}) {
      const uint32_t width = seed % 2 == 0 ? 20 : 57, height = seed % 2 == 0 ? 24 : 31;
      std::vector<uint8_t> bytes;
      for (const uint32_t pixel : test::noise_picture(seed++, width, height)) {
        for (uint32_t c = 0; c < channels; ++c) bytes.push_back(static_cast<uint8_t>(pixel >> (8 * c)));
      }
      const std::filesystem::path file = folder / (std::string(split) + "/" + name + ".png");
      std::filesystem::create_directories(file.parent_path());
      write_png(file, width, height, channels, bytes);
    }
  }
}

std::string model_in(const std::string& out) { return test::read_whole_file(out + "/model.safetensors"); }

}  // namespace

TEST_CASE("the device makes of pictures what timm and torchvision make of them, to the bit") {
  test::test_device();
  const std::vector<AugmentationCase> cases = test::augmentation_cases();
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const AugmentationCase*>> sizes;
  for (const AugmentationCase& one : cases) sizes[{one.width, one.height}].push_back(&one);
  REQUIRE(sizes.size() >= 6);
  std::vector<std::vector<const AugmentationCase*>> batches;
  for (const auto& [size, of_size] : sizes) batches.push_back(of_size);
  for (const auto& batch : test::of_turn(batches)) check_batch(batch);
  test::require_no_validation_messages();
}

// The part before and the one behind the stop have their pictures changed by the device and on the host.
TEST_CASE("a training that changes its pictures goes on where it was stopped, to the same bytes") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  for (const uint32_t channels : test::of_turn<uint32_t>({3, 1})) {
    const test::TemporaryFolder folder;
    make_pictures(folder, channels);
    std::map<std::string, std::string> models;
    for (const std::string name : {"plain", "rand", "trivial", "jitter", "both"}) {
      INFO(name << " of " << channels << " channels");
      TrainConfig config = small_config(channels);
      config.random_resized_crop = RandomResizedCrop{.scale_low = 0.3};
      if (name == "rand" || name == "both")
        config.augmentation.rand_augment =
            rand_augment_named("rand-m9-p1-inc1-mstd0.5", "spec", ErrorCode::usage);
      config.augmentation.trivial_augment = name == "trivial";
      if (name == "jitter" || name == "both") {
        config.augmentation.color_jitter = color_jitter_of(0.4);
        config.augmentation.color_jitter->hue = {-0.1, 0.1};
      }
      config.validate("the test's configuration");
      const auto data = open_dataset(folder.path(), Split::train, dataset_options(config));
      const std::string out = (folder / name).string();
      const std::atomic<bool> never{false};
      TrainingRun whole(pipelines, config, *data, {.out = out + "/whole"});
      REQUIRE(whole.run({}, never));
      for (const bool last : {false, true}) {
        TrainingRun part(pipelines, config, *data,
                         {.out = out + "/parts", .resume = true, .pictures_on_host = last});
        std::atomic<bool> stop{false};
        REQUIRE(part.run({.between = [&] { stop = !last; }}, stop) == last);
      }
      models[name] = model_in(out + "/whole");
      CHECK(model_in(out + "/parts") == models[name]);
      for (const auto& [other, bytes] : models) CHECK((other == name || bytes != models[name]));
      if (name != "rand") continue;
      // Others are refused by name.
      config.augmentation.rand_augment->magnitude = 8;
      CHECK_THROWS_WITH(TrainingRun(pipelines, config, *data, {.out = out + "/parts", .resume = true}),
                        Catch::Matchers::ContainsSubstring("rand_augment"));
    }
  }
  test::require_no_validation_messages();
}

TEST_CASE("a test sees pictures as they are, whatever the training does to them") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const test::TemporaryFolder folder;
  make_pictures(folder, 3);
  std::vector<double> losses;
  for (const bool augmented : {false, true}) {
    TrainConfig config = small_config(3);
    if (augmented) config.augmentation = {.trivial_augment = true, .color_jitter = color_jitter_of(0.9)};
    const auto data = open_dataset(folder.path(), Split::test, dataset_options(config));
    TrainingRun run(pipelines, config, *data, {});
    losses.push_back(run.test(*data).loss);
  }
  CHECK(losses[0] == losses[1]);
  test::require_no_validation_messages();
}

}  // namespace vitrine
