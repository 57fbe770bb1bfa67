// What `vitrine train` is told, and what comes of it: configuration, data sets, and the model to begin with.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/common_options.h"
#include "train/data/dataset.h"
#include "train/start_model.h"
#include "train/train_config.h"

namespace vitrine::cli {

struct TrainFlags {
  std::string data, config, out, model, image_size, variants, fusions = "all", layouts = "kernels";
  std::vector<std::string> set;
  std::optional<std::string> train, head_init, precision;
  std::optional<uint64_t> epochs, batch_size, seed, classes;
  std::optional<double> lr, weight_decay, warmup_epochs, label_smoothing, layer_decay, ema_decay;
  std::optional<bool> flip, resized_crop, trivial_augment;
  std::optional<std::string> rand_augment;
  std::optional<double> color_jitter;
  std::optional<std::string> validate_every;
  std::optional<uint64_t> patience, keep;
  std::optional<uint64_t> parts;
  std::string devices;
  bool tensorboard = false;
  double checkpoint_seconds = 60;
  bool resume = false, recompute = false, untuned = false;
};

void add_train_options(CLI::App& command, TrainFlags& flags);

struct TrainSetup {
  TrainConfig config;
  std::unique_ptr<Dataset> data, test, validation;  // the last where it is validated
  std::optional<StartModel> start;                  // where there is --model
};

// Reads the files, which needs no device. Errors name the option or the file.
TrainSetup read_train_setup(const TrainFlags& flags, const CommonOptions& common);

// What is trained of a model that was trained before, in a sentence: how many of its numbers.
std::string trained_text(const TrainConfig& config);

}  // namespace vitrine::cli
