// A data set of 100 pictures and a training of it that takes a second: what the tests of `vitrine train`
// share.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace vitrine::test {

inline std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

// Pictures of 12x12 pixels: noise, and for each of four classes a bright band, which mirroring leaves.
inline void write_pictures(const TemporaryFolder& folder, const std::string& prefix, uint32_t count,
                           uint32_t seed) {
  std::mt19937 random(seed);
  std::string pictures = big_endian(0x803) + big_endian(count) + big_endian(12) + big_endian(12);
  std::string labels = big_endian(0x801) + big_endian(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t label = random() % 4;
    for (uint32_t p = 0; p < 144; ++p) {
      pictures += static_cast<char>(random() % 100 + (p / 36 == label ? 120 : 0));
    }
    labels += static_cast<char>(label);
  }
  folder.file(prefix + "-images-idx3-ubyte", pictures);
  folder.file(prefix + "-labels-idx1-ubyte", labels);
}

struct TrainSetting {
  TemporaryFolder folder;
  std::string config;

  // `changes`: fields of the configuration that are to be others.
  explicit TrainSetting(const std::string& changes = "{}") {
    write_pictures(folder, "train", 100, 1);
    write_pictures(folder, "t10k", 50, 2);
    nlohmann::json json =
        nlohmann::json::parse(R"({"model": {"image_size": 12, "patch_size": 6, "channels": 1,
      "dim": 16, "depth": 2, "heads": 2, "classes": 4, "init": "torch", "dropout": 0.1, "stochastic_depth": 0.1},
      "data": {"mean": [0.5], "std": [0.25], "flip": true, "crop_padding": 1},
      "optimizer": "adamw", "lr": 0.01, "weight_decay": 0.05, "epochs": 3, "batch_size": 16, "schedule": "cosine",
      "warmup_steps": 4, "clip_norm": 1, "label_smoothing": 0.1, "accumulation": 2})");
    json.merge_patch(nlohmann::json::parse(changes));
    config = folder.file("config.json", json.dump());
  }

  std::vector<std::string> arguments(const std::string& out,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{VITRINE_PROGRAM, "train", "--data", folder.path().string(),
                                 "--config",      config,  "--out",  folder / out};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  CommandResult train(const std::string& out, const std::vector<std::string>& more = {}) const {
    return run_command(arguments(out, more));
  }
  std::string model(const std::string& out) const {
    return read_whole_file(folder / (out + "/model.safetensors"));
  }
};

// Trains to the end, saving all the time, and being killed at random moments and taken up again until `most`
// were killed of all trainings that count them.
inline void train_through_kills(const std::vector<std::string>& arguments, std::mt19937& random, int& killed,
                                int most) {
  CommandResult result;
  do {
    RunningCommand command(arguments);
    if (killed < most) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 700'000));
      command.kill();
    }
    result = command.wait();
    if (result.status == killed_status) ++killed;
    INFO(result.err);
    REQUIRE((result.status == 0 || result.status == killed_status));
  } while (result.status != 0);
}

inline void train_through_kills(const TrainSetting& setting, const std::string& out, std::mt19937& random,
                                int& killed, int most, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--resume", "--checkpoint-seconds", "0"});
  train_through_kills(setting.arguments(out, more), random, killed, most);
}

inline std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace vitrine::test
