// Whole trainings of the shipped configurations, and of every number of heads: on each kind of data set, from
// the start to a model, stopped on the way and taken up again.
#include "train/run/training_run.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "images/png_writer.h"
#include "runtime/util/error.h"
#include "tests/support/system_fonts.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_device.h"
#include "tests/support/turns.h"
#include "train/digits/digit_files.h"

namespace vitrine {
namespace {

// The pictures of a split as files, class by class.
void write_pictures(const std::filesystem::path& to, const Dataset& data) {
  const SampleShape& shape = data.shape();
  std::vector<uint8_t> planes(shape.bytes()), pixels(shape.bytes());
  for (uint64_t i = 0; i < data.count(); ++i) {
    data.read(i, planes);
    for (size_t p = 0; p < pixels.size(); ++p)
      pixels[p] = planes[p % shape.channels * shape.pixels() + p / shape.channels];
    const std::filesystem::path folder = to / std::to_string(data.label(i));
    std::filesystem::create_directories(folder);
    write_png(folder / (std::to_string(i) + ".png"), shape.width, shape.height, shape.channels, pixels);
  }
}

// Digits in the kind of data set that a configuration's model is for: MNIST's files for one channel,
// CIFAR-10's for 32 x 32 pixels in colors, folders of pictures for all else.
std::filesystem::path make_data(const test::TemporaryFolder& folder, const ViTConfig& model) {
  DigitSet set{.train = 5, .test = 3, .seed = 3};
  if (model.channels == 1) {
    set.size = static_cast<uint32_t>(model.image_width);
    write_digits(folder / "idx", test::system_fonts(), set);
    return folder / "idx";
  }
  set.size = 32;
  set.format = DigitFormat::cifar10;
  write_digits(folder / "cifar", test::system_fonts(), set);
  if (model.image_width == 32) return folder / "cifar";
  write_pictures(folder / "pictures/train", *open_dataset(folder / "cifar", Split::train));
  // Folders of classes that the training set has.
  write_pictures(folder / "pictures/test", *open_dataset(folder / "cifar", Split::train));
  return folder / "pictures";
}

std::string trained_model(const std::filesystem::path& out) {
  return test::read_whole_file(out / "model.safetensors");
}

// Trains to the end, and once more with a stop behind each of the updates that are named. Both must come to
// the same bytes, whose losses are numbers.
void check_training(const TrainConfig& config, const std::filesystem::path& data_folder,
                    const std::vector<uint64_t>& stops) {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const test::TemporaryFolder folder;
  const auto train = open_dataset(data_folder, Split::train, dataset_options(config)),
             test = open_dataset(data_folder, Split::test, dataset_options(config));
  const std::atomic<bool> never{false};
  std::vector<double> losses;
  TrainingRun whole(pipelines, config, *train, {.out = folder / "whole"});
  CHECK(whole.run({.progress = [&](const TrainingProgress& p) { losses.push_back(p.batch_loss); }}, never));
  const TestResult result = whole.test(*test);
  const uint64_t batches = (train->count() + config.batch_size - 1) / config.batch_size;
  REQUIRE(losses.size() == config.epochs * batches);
  for (const double loss : losses) CHECK(std::isfinite(loss));
  // Not the same number for whatever the parameters are.
  CHECK(std::ranges::minmax(losses).max > std::ranges::minmax(losses).min);
  CHECK(std::isfinite(result.loss));

  for (size_t i = 0; i <= stops.size(); ++i) {
    TrainingRun part(pipelines, config, *train, {.out = folder / "parts", .resume = true});
    std::atomic<bool> stop{false};
    const bool last = i == stops.size();
    uint64_t updates = 0;
    const bool done = part.run({.between = [&] { stop = !last && ++updates == stops[i]; }}, stop);
    REQUIRE(done == last);
  }
  CHECK(trained_model(folder / "parts") == trained_model(folder / "whole"));
  test::require_no_validation_messages();
}

}  // namespace

TEST_CASE("every configuration that is shipped trains at its own width, and goes on where it was stopped") {
  test::test_device();
  const std::filesystem::path configs = std::filesystem::path(VITRINE_TEST_DATA).parent_path() / "configs";
  std::vector<std::filesystem::path> shipped;
  for (const auto& entry : std::filesystem::directory_iterator(configs)) shipped.push_back(entry.path());
  std::ranges::sort(shipped);
  CHECK(shipped.size() >= 4);
  for (const std::filesystem::path& path : test::of_turn(shipped)) {
    CAPTURE(path);
    TrainConfig config = read_train_config(path);
    // As wide as it is, with all of its heads: how much kernels read and write hangs on these.
    config.model.depth = 1;
    // A large model a quarter as wide, of a few patches, where all of it takes half an hour.
    if (test::computes_slowly() && config.model.dim > 384) {
      test::leave_out("three quarters of the width of " + path.filename().string() +
                      ": a CPU without kernels of its own takes minutes");
      config.model.image_height = 3 * config.model.patch_height;
      config.model.image_width = 4 * config.model.patch_width;
      config.model.dim /= 4;
      config.model.heads /= 4;
      config.model.mlp_hidden /= 4;
    }
    config.batch_size = 2;
    config.epochs = 2;
    config.warmup_steps = 2;
    const test::TemporaryFolder folder;
    check_training(config, make_data(folder, config.model), {3});
  }
}

// Five samples in batches of two: the last batch has one.
TEST_CASE("a training by a recipe goes on where it was stopped") {
  PipelineStore& pipelines = *test::test_device().pipelines;
  const test::TemporaryFolder folder;
  write_digits(folder / "data", test::system_fonts(), {.train = 5, .test = 3, .seed = 3});
  TrainConfig config{.epochs = 3, .batch_size = 2, .accumulation = 2, .seed = 5};
  config.model = {.image_height = 28, .image_width = 28, .patch_height = 7, .patch_width = 7, .channels = 1};
  config.model.dim = 24;
  config.model.depth = 1;
  config.model.heads = 2;
  config.model.classes = 10;
  config.mean = {0.2};
  config.flip = true;
  const auto data = open_dataset(folder / "data", Split::train, dataset_options(config));
  {
    TrainingRun teacher(pipelines, config, *data, {.out = folder / "teacher"});
    CHECK(teacher.run({}, std::atomic<bool>(false)));
  }

  config.model.distillation_token = config.model.distilled_head = true;
  config.mean = {0.3};
  config.label_smoothing = 0.1;
  Recipe& recipe = config.recipe;
  recipe.mixup = {.mixup_alpha = 0.8, .cutmix_alpha = 1, .mode = MixMode::elem};
  recipe.random_erasing = {.probability = 0.7, .mode = ErasingMode::pixel, .max_count = 2};
  recipe.distillation = {.model = (folder / "teacher").string()};
  recipe.repeats = 2;
  recipe.sampling = Sampling::balanced;
  recipe.warmup_epochs = 1;
  check_training(config, folder / "data", {1, 2});
  recipe.loss = Loss::bce;
  recipe.mixup.mode = MixMode::pair;
  recipe.random_erasing.mode = ErasingMode::rand;
  recipe.distillation.kind = DistillationKind::soft;
  check_training(config, folder / "data", {2});

  // Another teacher of the same name isn't gone on with.
  {
    TrainingRun student(pipelines, config, *data, {.out = folder / "student"});
    CHECK(student.run({}, std::atomic<bool>(false)));
  }
  TrainConfig other_teacher{.epochs = 1, .batch_size = 2, .seed = 6};
  other_teacher.model = config.model;
  other_teacher.model.distillation_token = other_teacher.model.distilled_head = false;
  std::filesystem::remove_all(folder / "teacher");
  TrainingRun again(pipelines, other_teacher, *data, {.out = folder / "teacher"});
  CHECK(again.run({}, std::atomic<bool>(false)));
  CHECK_THROWS_WITH(TrainingRun(pipelines, config, *data, {.out = folder / "student", .resume = true}),
                    Catch::Matchers::ContainsSubstring("the checksum of the teacher's weights"));

  const auto refuses = [&](const TrainConfig& other, const char* what) {
    try {
      const Trainer trainer(pipelines, other, 1);
      FAIL("a teacher was taken that doesn't fit");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_file);
      CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(what));
    }
  };
  TrainConfig other = config;
  other.model.classes = 9;
  refuses(other, "has a number of classes of 10, the student's 9 was expected");
  other = config;
  other.model.image_width = 35;
  refuses(other, "has pictures of 1 x 28 x 28, the student's 1 x 28 x 35 was expected");
  other.recipe.distillation.model = (folder / "nothing").string();
  CHECK_THROWS_AS(Trainer(pipelines, other, 1), Error);
}

TEST_CASE("models of 1 to 24 heads train, and go on where they were stopped") {
  test::test_device();
  const test::TemporaryFolder folder;
  write_digits(folder / "data", test::system_fonts(), {.train = 5, .test = 3, .seed = 3});
  // Models of one width share most pipelines. The last is as wide as a small ViT: with few heads its kernels
  // read less far behind a buffer than with many.
  std::map<uint64_t, std::vector<uint64_t>> heads_of_width{
      {35, {5, 7}}, {48, {1, 2, 3, 4, 6, 8, 12, 16, 24}}, {384, {6, 24}}};
  if (test::compiles_slowly()) heads_of_width = {{35, {7}}, {48, {1, 12, 24}}, {384, {6}}};
  if (test::computes_slowly()) {
    test::leave_out("a width of 384: a CPU without kernels of its own takes minutes");
    heads_of_width = {{35, {7}}, {48, {1, 12, 24}}};
  }
  std::vector<std::pair<uint64_t, uint64_t>> models;
  for (const auto& [width, numbers] : heads_of_width) {
    for (const uint64_t heads : numbers) models.emplace_back(width, heads);
  }
  for (const auto& [width, heads] : test::of_turn(models)) {
    CAPTURE(width, heads);
    TrainConfig config{.lr = 0.01, .clip_norm = 1, .epochs = 2, .batch_size = 3};
    ViTConfig& model = config.model;
    model.image_height = model.image_width = 28;
    model.patch_height = model.patch_width = 4;
    model.channels = 1;
    model.classes = 10;
    model.heads = heads;
    model.dim = width;
    model.depth = 1;
    model.mlp_hidden = 16;
    config.validate("the test's configuration");
    check_training(config, folder / "data", {1});
  }
}

}  // namespace vitrine
