#include "train/train_config.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "runtime/util/error.h"
#include "train/parameter_layout.h"

namespace vitrine {
namespace {

using Catch::Matchers::WithinRel;

TrainConfig config_of(const char* text) { return train_config_of(nlohmann::json::parse(text), "test.json"); }

TEST_CASE("a training's configuration keeps what it doesn't say") {
  const TrainConfig c =
      config_of(R"({"model": {"dim": 64, "heads": 4, "classes": 10}, "lr": 0.25, "optimizer": "sgd"})");
  CHECK(c.model.dim == 64);
  CHECK(c.lr == 0.25);
  CHECK(c.optimizer == Optimizer::sgd);
  CHECK(c.momentum == TrainConfig().momentum);
  CHECK(c.batch_size == TrainConfig().batch_size);
  CHECK(c.schedule == Schedule::constant);
  CHECK(c.precision == Precision::f32);
}

TEST_CASE("what a configuration is written as reads back as the same") {
  TrainConfig c =
      config_of(R"({"model": {"dim": 48, "heads": 4, "classes": 10, "channels": 1, "init": "torch"},
    "data": {"mean": [0.1], "std": [0.3], "class_names": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"], "crop_padding": 2, "flip": true}, "optimizer": "adam", "lr": 0.1,
    "momentum": 0.5, "beta1": 0.8, "beta2": 0.9, "eps": 1e-6, "weight_decay": 0.3, "clip_norm": 2,
    "label_smoothing": 0.1, "epochs": 7, "batch_size": 9, "accumulation": 3, "schedule": "cosine", "warmup_steps": 5,
    "min_lr": 1e-5, "seed": 77, "precision": "f16", "max_skipped_steps": 3, "validate_every": 40, "patience": 2, "keep": 5, "tensorboard": true})");
  CHECK(c.keep == 5);
  CHECK(train_config_of(nlohmann::json::parse(to_json(c).dump()), "again") == c);
  c.validate_every = TrainConfig::every_epoch;
  CHECK(to_json(c).at("validate_every") == "epoch");
  CHECK(train_config_of(nlohmann::json::parse(to_json(c).dump()), "again") == c);
  // What isn't asked for isn't written: settings of before such a field are those of today.
  CHECK_FALSE(to_json(c).at("data").contains("preprocess"));
  CHECK_FALSE(to_json(c).at("data").contains("random_resized_crop"));
  c.crop_padding = 0;
  c.preprocess = profile_named("timm", 224, 224);
  c.random_resized_crop = {.scale_low = 0.25, .ratio_high = 2, .filter = Filter::lanczos};
  const TrainConfig again = train_config_of(nlohmann::json::parse(to_json(c).dump()), "again");
  CHECK(again == c);
  CHECK(again.random_resized_crop->filter == Filter::lanczos);
  c.random_resized_crop->filter = Filter::bicubic;
  CHECK_FALSE(again == c);
}

TEST_CASE("a training's preprocessing is the configuration's, with its numbers") {
  TrainConfig c = config_of(R"({"model": {"image_size": 32, "patch_size": 8, "classes": 10}})");
  CHECK(preprocessing_of(c) == cover_and_crop(32, 32, {0}, {1}));
  c.mean = {0.1, 0.2, 0.3};
  CHECK(preprocessing_of(c) == cover_and_crop(32, 32, {0.1, 0.2, 0.3}, {1}));
  c.preprocess = profile_named("clip", 32, 32);
  Preprocess expected = profile_named("clip", 32, 32);
  expected.mean = {0.1, 0.2, 0.3};
  CHECK(preprocessing_of(c) == expected);
  c.mean.clear();
  CHECK(preprocessing_of(c) == profile_named("clip", 32, 32));
}

TEST_CASE("a recipe reads back as it is written, and one with nothing on is not written") {
  const TrainConfig c = config_of(R"({"model": {"dim": 48, "heads": 4, "classes": 10}, "loss": "bce",
    "bce_target_threshold": 0.2, "bce_sum": true,
    "mixup": {"mixup_alpha": 0.8, "cutmix_alpha": 1, "cutmix_minmax": [0.2, 0.9], "prob": 0.5, "switch_prob": 0.3,
              "mode": "elem"},
    "random_erasing": {"probability": 0.25, "mode": "pixel", "min_area": 0.1, "max_area": 0.2, "min_aspect": 0.5,
                       "max_aspect": 3, "min_count": 2, "max_count": 4},
    "distillation": {"model": "teacher", "kind": "soft", "alpha": 0.1, "tau": 3, "sum": true},
    "warmup_epochs": 2.5, "warmup_lr": 1e-6, "schedule_by": "epochs", "repeats": 3, "sampling": "balanced"})");
  CHECK(c.recipe.mixup.mode == MixMode::elem);
  CHECK(c.recipe.random_erasing.boxes() == 4);
  CHECK(c.recipe.distillation.kind == DistillationKind::soft);
  CHECK(train_config_of(nlohmann::json::parse(to_json(c).dump()), "again") == c);
  const nlohmann::ordered_json plain = to_json(config_of(R"({"model": {"classes": 10}})"));
  for (const std::string_view field : recipe_fields) CHECK_FALSE(plain.contains(field));
}

TEST_CASE("configurations that make no sense are refused") {
  for (const char* text :
       {R"({"model": {"classes": 10}, "loss": "mse"})",
        R"({"model": {"classes": 10}, "mixup": {"alpha": 1}})",
        R"({"model": {"classes": 10}, "mixup": {"mixup_alpha": -1}})",
        R"({"model": {"classes": 10}, "mixup": {"cutmix_minmax": [0.9, 0.2]}})",
        R"({"model": {"classes": 10}, "mixup": {"cutmix_minmax": [0.9]}})",
        R"({"model": {"classes": 10}, "mixup": 0.8})",
        R"({"model": {"classes": 10}, "mixup": {"mode": "all"}})",
        R"({"model": {"classes": 10}, "random_erasing": {"probability": 2}})",
        R"({"model": {"classes": 10}, "random_erasing": {"min_area": 0.5}})",
        R"({"model": {"classes": 10}, "random_erasing": {"min_count": 3, "max_count": 2}})",
        R"({"model": {"classes": 10}, "distillation": {"alpha": 0.5}})",
        R"({"model": {"classes": 10}, "distillation": {"model": "t", "tau": 0}})",
        R"({"model": {"classes": 10, "softmax_output": true}, "loss": "bce"})",
        R"({"model": {"classes": 10, "softmax_output": true}, "distillation": {"model": "t"}})",
        R"({"model": {"classes": 10}, "bce_sum": true})",
        R"({"model": {"classes": 10}, "repeats": 0})",
        R"({"model": {"classes": 10}, "sampling": "some"})",
        R"({"model": {"classes": 10}, "warmup_epochs": 1, "warmup_steps": 1})",
        R"({"model": {"classes": 1}})",
        R"({"model": {"classes": 10}, "lr": -1})",
        R"({"model": {"classes": 10}, "beta1": 1})",
        R"({"model": {"classes": 10}, "epochs": 0})",
        R"({"model": {"classes": 10}, "data": {"std": [0, 1, 1]}})",
        R"({"model": {"classes": 10}, "precision": "bf16"})",
        R"({"model": {"classes": 10}, "accumulation": 0})",
        R"({"model": {"classes": 10}, "lr": "a"})",
        R"({"model": {"classes": 10, "width": 3}})",
        R"({"model": 3})",
        R"([])",
        R"({"model": {"classes": 10}, "data": {"crop_padding": 300}})",
        R"({"model": {"classes": 10}, "keep": 0})",
        R"({"model": {"classes": 10}, "max_skipped_steps": 0})",
        R"({"model": {"classes": 10}, "patience": 2})",
        R"({"model": {"classes": 10}, "validate_every": "often"})",
        R"({"model": {"classes": 10}, "validate_every": -1})",
        R"({"model": {"classes": 10}, "data": {"crop_padding": 1, "random_resized_crop": {}}})",
        R"({"model": {"classes": 10}, "data": {"random_resized_crop": {"scale": [0, 1]}}})",
        R"({"model": {"classes": 10}, "data": {"random_resized_crop": {"scale": [0.5, 2]}}})",
        R"({"model": {"classes": 10}, "data": {"random_resized_crop": {"ratio": [2, 1]}}})",
        R"({"model": {"classes": 10}, "data": {"random_resized_crop": {"ratio": 2}}})",
        R"({"model": {"classes": 10}, "data": {"random_resized_crop": {"interpolation": "best"}}})",
        R"({"model": {"classes": 10}, "data": {"random_resized_crop": true}})",
        R"({"model": {"classes": 10}, "data": {"preprocess": {"resize": "stretch", "resize_size": [8, 8]}}})",
        R"({"model": {"classes": 3}, "data": {"class_names": ["a", "b"]}})",
        R"({"model": {"classes": 2}, "data": {"class_names": ["a", 2]}})"}) {
    INFO(text);
    CHECK_THROWS_AS(config_of(text), Error);
  }
}

TEST_CASE("the learning rate's schedule is of updates or of epochs") {
  // Ten epochs of seven updates.
  TrainConfig c{.lr = 2, .epochs = 10, .min_lr = 0.5};
  c.schedule = Schedule::cosine;
  c.recipe.warmup_epochs = 2;
  CHECK(learning_rate(c, 0, 70) == 2.0 / 14);
  CHECK(learning_rate(c, 13, 70) == 2);
  CHECK(learning_rate(c, 14, 70) == 2);
  CHECK_THAT(learning_rate(c, 42, 70), WithinRel(1.25, 1e-12));
  // Where it begins at a rate, that is the first update's, as in timm.
  c.recipe.warmup_lr = 0.6;
  CHECK(learning_rate(c, 0, 70) == 0.6);
  CHECK_THAT(learning_rate(c, 7, 70), WithinRel(1.3, 1e-12));
  CHECK(learning_rate(c, 14, 70) == 2);
  c.recipe.schedule_by = ScheduleBy::epochs;
  for (uint64_t step = 0; step < 70; ++step) {
    INFO("step " << step);
    CHECK(learning_rate(c, step, 70) == learning_rate(c, step / 7 * 7, 70));
  }
  CHECK(learning_rate(c, 6, 70) == 0.6);
  CHECK_THAT(learning_rate(c, 7, 70), WithinRel(1.3, 1e-12));
  CHECK(learning_rate(c, 20, 70) == 2);
  CHECK_THAT(learning_rate(c, 42, 70), WithinRel(1.25, 1e-12));
}

TEST_CASE("the learning rate warms up and falls as a cosine") {
  TrainConfig c;
  c.lr = 2;
  c.min_lr = 0.5;
  c.warmup_steps = 4;
  CHECK(learning_rate(c, 0, 100) == 0.5);
  CHECK(learning_rate(c, 3, 100) == 2);
  CHECK(learning_rate(c, 50, 100) == 2);
  c.schedule = Schedule::cosine;
  CHECK(learning_rate(c, 4, 100) == 2);
  CHECK_THAT(learning_rate(c, 52, 100), WithinRel(1.25, 1e-12));
  CHECK(learning_rate(c, 99, 100) > 0.5);
  CHECK(learning_rate(c, 99, 100) < 0.51);
}

TEST_CASE("parameters lie one after the other, those that decay in front") {
  ViTConfig config{.image_height = 8,
                   .image_width = 8,
                   .patch_height = 4,
                   .patch_width = 4,
                   .dim = 24,
                   .depth = 2,
                   .heads = 2,
                   .layer_scale = true,
                   .classes = 5};
  const ParameterLayout layout = layout_of(config);
  uint64_t end = 0, elements = 0;
  for (const auto& [parameter, first] : layout.places) {
    CHECK(first % 64 == 0);
    CHECK(first >= end);
    end = first + parameter.shape.elements();
    elements += parameter.shape.elements();
    const bool matrix =
        parameter.name.ends_with(".weight") && parameter.name.find("norm") == std::string::npos;
    CHECK((first < layout.groups.at(0).decay_elements) == matrix);
  }
  CHECK(end <= layout.elements);
  CHECK(elements == parameter_count(config));
  CHECK(layout.find("blocks.1.ls2.gamma").parameter.shape == Shape{24});
  CHECK_THROWS_AS(layout.find("blocks.2.ls2.gamma"), Error);
}

TEST_CASE("the presets are configurations that can be trained") {
  const std::filesystem::path folder = std::filesystem::path(VITRINE_TEST_DATA).parent_path() / "configs";
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    INFO(entry.path().string());
    CHECK_NOTHROW(read_train_config(entry.path()));
    ++count;
  }
  CHECK(count >= 3);
}

}  // namespace
}  // namespace vitrine
