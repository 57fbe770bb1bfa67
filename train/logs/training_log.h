// What a training tells of itself in its folder: log.csv, a line an update and a line a validation, and where
// it is asked for the same as TensorBoard's events.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "train/data/dataset.h"
#include "train/run/validation.h"

namespace vitrine {

std::filesystem::path log_in(const std::filesystem::path& out);
std::filesystem::path events_in(const std::filesystem::path& out);

// How much of the files is of what a checkpoint holds. What was written behind it is written again by who
// goes on from there.
struct LogSizes {
  uint64_t csv = 0, events = 0;
  bool operator==(const LogSizes&) const = default;
};

struct UpdateLine {
  uint64_t update = 0, epoch = 0;  // from 1
  double loss = 0;                 // the mean of its samples'
  double learning_rate = 0, gradient_norm = 0;
  uint64_t skipped = 0;  // updates that were left out so far
  double images_per_second = 0;
};

class TrainingLog {
 public:
  // Goes on behind `sizes`: of a training that begins, nothing stays. Error(usage) where a log.csv is there
  // that is another's.
  TrainingLog(const std::filesystem::path& out, bool tensorboard, const LogSizes& sizes);
  ~TrainingLog();
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;

  void add(const UpdateLine& line);
  void add(const ValidationResult& validation);
  // The first pictures of a data set, into the events alone.
  void add_pictures(const Dataset& data);
  // Brings all of it to the disk.
  LogSizes flush();

 private:
  class File;
  void write_sometimes();

  LogSizes before_;
  std::unique_ptr<File> csv_, events_;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace vitrine
