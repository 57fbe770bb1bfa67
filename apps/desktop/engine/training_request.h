// What a training is started with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "train/digits/digit_files.h"
#include "train/train_config.h"

namespace vitrine::desktop {

struct TrainingRequest {
  std::string name;  // as the window calls it
  TrainConfig config;
  std::filesystem::path from;  // a folder that a training was saved to, which goes on; empty: from the start
  // A data set's folder; empty: digits are drawn with this machine's fonts, of the model's size.
  std::filesystem::path data;
  DigitSet digits{.train = 10000, .test = 2000};
  std::filesystem::path cache;  // where drawn digits are kept; empty: Vitrine's cache folder

  // Pauses when so many steps (batches) are done; 0: never.
  uint64_t step_limit = 0;
  // How often the model is tested on a part of the test set, in steps, and how large the part is, in batches.
  uint64_t test_every = 25, test_batches = 8;
};

// `config` is the name of a file in configs/, a file, or a folder with a saved training. Error where the
// configuration can't be read.
TrainingRequest training_of(const std::string& config, const std::filesystem::path& data);
// Goes on with what was saved to this folder, on the same data.
TrainingRequest saved_training(const std::string& folder, const std::filesystem::path& data);

// Where its data set lies. Draws digits where it asks for them; `progress` is given the share that is done.
std::filesystem::path data_folder(const TrainingRequest& request,
                                  const std::function<void(double)>& progress);

}  // namespace vitrine::desktop
