// Folders of pictures of any shape: a training's own test, eval and classify see the same numbers.
#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <filesystem>
#include <map>

#include "images/image.h"
#include "images/png_writer.h"
#include "model/files/model_pictures.h"
#include "model/pictures/preprocess_picture.h"
#include "model/run/picture_runner.h"
#include "tests/support/noise_picture.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"
#include "train/data/picture_dataset.h"
#include "train/evaluate.h"
#include "train/run/training_run.h"

namespace vitrine {
namespace {

const std::filesystem::path pictures_folder =
    std::filesystem::path(VITRINE_TEST_DATA) / "images" / "pictures";

// Photographs that EXIF would turn and others, noise of sizes that no filter divides, one picture that is
// smaller than the model's on both sides and one of a single row.
void make_data(const test::TemporaryFolder& folder) {
  const auto noise = [&](const std::string& name, uint64_t seed, uint32_t width, uint32_t height) {
    std::vector<uint8_t> bytes;
    for (const uint32_t pixel : test::noise_picture(seed, width, height)) {
      for (uint32_t c = 0; c < 3; ++c) bytes.push_back(static_cast<uint8_t>(pixel >> (8 * c)));
    }
    std::filesystem::create_directories((folder / name).parent_path());
    write_png(folder / name, width, height, 3, bytes);
  };
  for (const char* split : {"train", "test"}) {
    const std::string in = split;
    const uint64_t seed = in == "train" ? 1 : 100;
    noise(in + "/wide/a.png", seed, 91, 40);
    noise(in + "/wide/b.png", seed + 1, 403, 301);
    noise(in + "/wide/c.png", seed + 2, 13, 9);
    noise(in + "/wide/d.png", seed + 3, 57, 1);
    noise(in + "/tall/a.png", seed + 4, 31, 90);
    noise(in + "/tall/b.png", seed + 5, 24, 25);
    for (int orientation = 3; orientation <= 8; ++orientation) {
      const std::string name = "jpeg_exif_" + std::to_string(orientation) + ".jpg";
      std::filesystem::copy_file(pictures_folder / name, folder / (in + "/tall/" + name));
    }
    std::filesystem::create_directories(folder / (in + "/grey"));
    for (const char* name : {"jpeg_403x301.jpg", "jpeg_grey.jpg", "png_palette_2.png"})
      std::filesystem::copy_file(pictures_folder / name, folder / (in + "/grey/" + name));
  }
}

TrainConfig small_config(uint64_t channels) {
  TrainConfig config{.lr = 0.01, .epochs = 1, .batch_size = 4};
  config.model = {.image_height = 24,
                  .image_width = 24,
                  .patch_height = 8,
                  .patch_width = 8,
                  .dim = 32,
                  .depth = 2,
                  .heads = 2,
                  .classes = 3};
  config.model.channels = channels;
  config.model = config.model.resolved();
  config.validate("the test's configuration");
  return config;
}

using Rows = std::vector<std::vector<float>>;

// As classify does it, from the files: in the order of the classes' names, and of the files' in them.
Rows classified(const Model& model, const std::filesystem::path& folder, uint64_t batch) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  Rows rows;
  PictureRunner runner(
      *test::test_device().pipelines, model, model.preprocess, {.batch = batch},
      [&](uint64_t, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); });
  for (const std::filesystem::path& file : files) {
    Image image = decode_image(file, decoding(model.preprocess));
    if (model.config.channels == 1) make_grey(image);
    runner.add({image.width, image.height, std::move(image.pixels)}, file.string());
  }
  runner.finish();
  return rows;
}

void check_agreement(const TrainConfig& config) {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const test::TemporaryFolder folder;
  make_data(folder);
  const auto train = open_dataset(folder.path(), Split::train, dataset_options(config)),
             test = open_dataset(folder.path(), Split::test, dataset_options(config));
  REQUIRE(test->count() == 15);
  TrainingRun run(pipelines, config, *train, {.out = folder / "model"});
  const std::atomic<bool> never{false};
  REQUIRE(run.run({}, never));
  Rows tested;
  const TestResult result =
      run.test(*test, [&](std::span<const float> results, std::span<const uint32_t> labels) {
        const size_t classes = results.size() / labels.size();
        for (size_t i = 0; i < labels.size(); ++i)
          tested.emplace_back(results.begin() + static_cast<ptrdiff_t>(i * classes),
                              results.begin() + static_cast<ptrdiff_t>((i + 1) * classes));
      });

  const Model model = open_model({.model = folder / "model"});
  CHECK(model.preprocess == preprocessing_of(config));
  const auto again = open_evaluation_set(model, folder.path(), Split::test);
  for (const uint64_t batch : {4, 3}) {
    const TestResult evaluated = evaluate_on(pipelines, model, *again, {.batch = batch});
    CHECK(evaluated.loss == result.loss);
    CHECK(evaluated.accuracy == result.accuracy);
  }
  CHECK(classified(model, folder / "test", 8) == tested);
  // They are not all the same, or anything would agree.
  CHECK(std::ranges::adjacent_find(tested) == tested.end());
  test::require_no_validation_messages();
}

}  // namespace

TEST_CASE(
    "a training's own test, eval and classify agree to the bit on pictures of any shape, with EXIF too") {
  test::test_device();
  std::vector<TrainConfig> configs{small_config(3), small_config(3), small_config(1)};
  configs[1].mean = {0.485, 0.456, 0.406};
  configs[1].std = {0.229, 0.224, 0.225};
  configs[1].preprocess = profile_named("timm", 24, 24);
  configs[2].preprocess = profile_named("siglip", 24, 24);
  configs[2].preprocess->mean = configs[2].preprocess->std = {0.25};
  for (const TrainConfig& config : test::of_turn(configs)) check_agreement(config);
}

TEST_CASE("an evaluation shows pictures in their own shape where the model sees them so") {
  test::TestDevice& device = test::test_device();
  const test::TemporaryFolder folder;
  make_data(folder);
  Model model = open_model({.arch = "vit_tiny_patch16_224",
                            .set = {"patch_size=32", "dim=32", "heads=2", "depth=1", "classes=3"},
                            .profile = "naflex"});
  REQUIRE(model.preprocess.kept_shape);
  model.preprocess.kept_shape->most_patches = 12;
  const auto data = open_evaluation_set(model, folder.path(), Split::test);
  Rows evaluated;
  evaluate_on(*device.pipelines, model, *data, {.batch = 4}, {},
              [&](std::span<const float> row, std::span<const uint32_t>) {
                evaluated.emplace_back(row.begin(), row.end());
              });
  const Rows expected = classified(model, folder / "test", 4);
  CHECK(expected.size() == 15);
  CHECK(evaluated == expected);
  model.preprocess = stretched_pictures(model, {});
  CHECK(classified(model, folder / "test", 4) != expected);
  test::require_no_validation_messages();
}

// The part before and the one behind the stop have their pictures resized by the device and on the host.
TEST_CASE("a training with random crops and mirrors goes on where it was stopped, to the same bytes") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const test::TemporaryFolder folder;
  make_data(folder);
  TrainConfig config = small_config(3);
  config.epochs = 2;
  config.flip = true;
  std::vector<std::string> models;
  for (const bool crops : {true, false}) {
    if (crops) config.random_resized_crop = RandomResizedCrop{.scale_low = 0.2};
    if (!crops) config.random_resized_crop.reset();
    const auto data = open_dataset(folder.path(), Split::train, dataset_options(config));
    const std::string out = (folder / (crops ? "crops" : "plain")).string();
    const std::atomic<bool> never{false};
    TrainingRun whole(pipelines, config, *data, {.out = out + "/whole"});
    REQUIRE(whole.run({}, never));
    for (const bool last : {false, true}) {
      TrainingRun part(pipelines, config, *data,
                       {.out = out + "/parts", .resume = true, .pictures_on_host = last});
      std::atomic<bool> stop{false};
      REQUIRE(part.run({.between = [&] { stop = !last; }}, stop) == last);
    }
    models.push_back(test::read_whole_file(out + "/whole/model.safetensors"));
    CHECK(test::read_whole_file(out + "/parts/model.safetensors") == models.back());
  }
  CHECK(models[0] != models[1]);
  test::require_no_validation_messages();
}

TEST_CASE("a step sees of a picture what preprocessing makes of it, in every place of every batch") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const test::TemporaryFolder folder;
  make_data(folder);
  const TrainConfig config = small_config(3);
  const auto data = open_dataset(folder.path(), Split::train, dataset_options(config));
  // A test's results tell pictures apart: the same for each in whichever company, and however many of them
  // the device is given at once.
  std::map<uint64_t, std::vector<float>> first;
  for (const auto& [begin, at_once] :
       {std::pair<uint64_t, uint64_t>{0, 1 << 24}, {0, 1}, {1, 9000}, {2, 1 << 24}, {5, 121303}}) {
    Trainer trainer(pipelines, config, 10,
                    {.images = StepImages::pictures, .pixels_at_once = at_once, .pictures_on_host = false});
    trainer.initialize(*random_weights(config.model, 1));
    uint64_t next = begin;
    Rows rows;
    trainer.test(
        [&](const Trainer::Slot& slot) -> std::optional<uint64_t> {
          if (next == data->count()) return std::nullopt;
          uint64_t samples = 0;
          for (; samples < config.batch_size && next < data->count(); ++samples, ++next) {
            const std::shared_ptr<const Picture> picture = data->picture(next);
            slot.labels[samples] = data->label(next);
            slot.pictures->add(part_of(
                picture, prepare_picture(*data->preprocess(), picture->height, picture->width, "a picture"),
                trainer.largest_picture()));
          }
          return samples;
        },
        [&](std::span<const float> results, std::span<const uint32_t> labels) {
          for (size_t i = 0; i < labels.size(); ++i)
            rows.emplace_back(results.begin() + static_cast<ptrdiff_t>(3 * i),
                              results.begin() + static_cast<ptrdiff_t>(3 * i + 3));
        });
    REQUIRE(rows.size() == data->count() - begin);
    for (uint64_t i = 0; i < rows.size(); ++i) {
      const auto [entry, is_new] = first.emplace(begin + i, rows[i]);
      CHECK(entry->second == rows[i]);
    }
  }
  test::require_no_validation_messages();
}

}  // namespace vitrine
