// vitrine bench --train: how fast a step of training is, and how much memory it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/common_options.h"
#include "runtime/graph/plan.h"

namespace vitrine::cli {

struct TrainBenchOptions {
  std::string config;            // file, as vitrine train takes it
  std::vector<std::string> set;  // overrides of the model's fields
  std::optional<uint64_t> batch;
  std::optional<std::string> trained;  // as --train of vitrine train, instead of the configuration's
  bool recompute = false;
  PlanOptions plan;
  uint64_t runs = 0;
  double seconds = 3;
  bool json = false;
};

// On random images and labels. Checks that the loss is finite before anything is timed.
void bench_train(const TrainBenchOptions& options, const CommonOptions& common);

}  // namespace vitrine::cli
