// A training as somebody asks for it, `vitrine train` or a program, and what comes of that: configuration,
// data sets, and the model to begin with. Sentences call the fields by the names of the tool's options.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "train/data/dataset.h"
#include "train/start_model.h"
#include "train/train_config.h"

namespace vitrine {

// What is left out is as the configuration has it.
struct TrainRequest {
  std::string data, out, model;
  std::string config;                      // a file; empty: none
  std::optional<nlohmann::json> settings;  // what such a file would hold; then `config` only names it
  uint64_t image_height = 0, image_width = 0;
  std::vector<std::string> set;
  std::optional<std::string> train, head_init, precision;
  std::optional<uint64_t> epochs, batch_size, seed, classes;
  std::optional<double> lr, weight_decay, warmup_epochs, label_smoothing, layer_decay, ema_decay;
  std::optional<bool> flip, resized_crop, trivial_augment;
  std::optional<std::string> rand_augment;
  std::optional<double> color_jitter;
  std::optional<uint64_t> validate_every;
  std::optional<uint64_t> patience, keep, parts;
  bool tensorboard = false;
  double checkpoint_seconds = 60;
  bool resume = false, recompute = false;
};

struct TrainSetup {
  TrainConfig config;
  std::unique_ptr<Dataset> data, test, validation;  // the last where it is validated
  std::optional<StartModel> start;                  // where there is a model to begin with
};

// Reads the files, which needs no device. Errors name the option or the file.
TrainSetup read_train_setup(const TrainRequest& request, const Warn& warn);

// What is trained of a model that was trained before, in a sentence: how many of its numbers.
std::string trained_text(const TrainConfig& config);

}  // namespace vitrine
