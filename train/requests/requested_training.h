// A training that was asked for, from its files to its tested model: what `vitrine train` and Python's
// vitrine.train() do.
#pragma once

#include <atomic>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "runtime/graph/pipeline_store.h"
#include "train/requests/train_request.h"
#include "train/run/training_run.h"

namespace vitrine {

// Who is told of it. All may be left out.
struct TrainingAudience {
  // What happened, as JSON that programs read: an epoch's end, a validation within one, and at last the test.
  std::function<void(const nlohmann::ordered_json&)> record = {};
  // What is trained, and what was decided for it, in a sentence each.
  std::function<void(const std::string&)> say = {};
  Warn warn = {};
  std::function<void(const TrainingProgress&)> progress = {};
  std::function<void(uint64_t done, uint64_t total)> features = {};
  std::function<void()> between = {};  // these three as TrainingEvents has them
  // Around what can be stopped and saved.
  std::function<void()> begins = {}, ends = {};
};

// On which devices; `shared` where they share the parts of each batch, be it one alone.
struct TrainingPlace {
  std::span<PipelineStore* const> devices;
  bool shared = false;
  PlanOptions plan = {};
};

// `setup` must be of this request. Throws Error(failed) where `stop` ended it: all is saved then, and the
// same request with `resume` goes on.
void run_training(const TrainRequest& request, const TrainSetup& setup, const TrainingPlace& place,
                  const TrainingAudience& audience, const std::atomic<bool>& stop);

}  // namespace vitrine
