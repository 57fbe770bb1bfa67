// A model on a device: plans and executables by batch size, all sharing one copy of the weights.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/files/weights.h"
#include "model/run/range_guard.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

struct RunnerOptions {
  DType dtype = DType::f32;
  std::optional<Result> result = {};  // the model's own when left out
  PlanOptions plan = {};              // as vitrine tune left the device, where it holds no choices of its own
  // Told which layers f16 can't hold and that run in f32 therefore.
  Warn warn = {};
  // Looks at the magnitudes of every batch before it runs, instead of only where something isn't finite.
  bool check_range = false;
};

// What running a plan takes of the device's memory beside constants and states: activations, and what goes in
// and comes out (twice).
uint64_t run_bytes(const Plan& plan);

// What is free in the device's memory: in the heap that has most.
uint64_t free_device_bytes(const Device& device);

// The largest of wanted, wanted/2, wanted/4, ... whose plan fits into what memory is free, with the constants
// that aren't there yet.
uint64_t fitting_batch(WeightStore& weights, uint64_t wanted, const std::function<Plan(uint64_t)>& plan_of);

class Runner {
 public:
  // Both must outlive the runner.
  Runner(PipelineStore& pipelines, const Model& model, RunnerOptions options = {});

  Result result() const { return options_.result.value_or(natural_result(model_.config)); }
  Plan plan(uint64_t batch);
  // What run() would take where so many are wanted.
  uint64_t fitting_batch(uint64_t wanted);
  // Made on first use.
  Executable& executable(uint64_t batch);
  // One that is looked into while it runs, on the same copy of the weights.
  std::unique_ptr<Executable> executable_with(BlockTaps taps, uint64_t batch);

  // Numbers that go in and come out of one image.
  uint64_t image_elements() const;
  uint64_t result_elements() const;

  // What check_range and earlier runs have found.
  RangeGuard& guard() { return guard_; }

  // Runs any number of images in batches of at most `largest_batch` (fewer where the device's memory
  // asks for it) and returns the results one after the other. While the device works on one batch, the
  // host fills the next. In f16, a batch of finite images whose results aren't is run again with the layers
  // in f32 that f16 can't hold, and so is everything after it.
  std::vector<float> run(std::span<const float> images, uint64_t largest_batch);
  void run(std::span<const float> images, uint64_t largest_batch, std::span<float> results);

 private:
  ViTGraphOptions graph_options(uint64_t batch) const;
  bool check_range(std::span<const float> images);
  bool promote_for(std::span<const float> images, std::span<const float> results);

  const Model& model_;
  RunnerOptions options_;
  WeightStore weights_;
  RangeGuard guard_;
  std::map<uint64_t, std::unique_ptr<Executable>> executables_;
};

}  // namespace vitrine
