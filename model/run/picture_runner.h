// Pictures through a model: preprocessing and model in one graph and one submission. While the device
// works on one batch, the host fills the next. Where pictures keep their shape a batch is of one shape, and
// later pictures may be computed before earlier ones of others.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "model/pictures/picture_input.h"
#include "model/run/range_guard.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

struct PictureRunnerOptions {
  DType dtype = DType::f32;
  std::optional<Result> result;  // the model's own when left out
  LayerTypes layers;             // as in ViTGraphOptions
  PlanOptions plan;
  // As in RunnerOptions.
  Warn warn = {};
  bool check_range = false;
  uint64_t batch = 8;  // pictures that are computed together, at most
  // The same model's, of somebody who lets this runner's thread use it: what both need is on the device once.
  std::shared_ptr<WeightStore> weights = {};
};

class PictureRunner {
 public:
  // Called with each picture's result, in the order in which they were added: with its number (from 0) and
  // the numbers, which live for the call only.
  using Take = std::function<void(uint64_t number, std::span<const float> result)>;

  // Pipelines and model must outlive the runner. The preprocessing must make pictures of the size that the
  // model is configured for, else Error(usage).
  PictureRunner(PipelineStore& pipelines, const Model& model, Preprocess preprocess,
                PictureRunnerOptions options, Take take);
  // What was added and not delivered is dropped.
  ~PictureRunner();

  Result result() const { return options_.result.value_or(natural_result(model_.config)); }
  // The batch that fits into the device's memory: what was asked for, or less.
  uint64_t batch() const { return options_.batch; }
  // What one picture may need; prepare() resizes those that need more.
  const PictureCapacity& largest() const { return largest_; }
  // What has been found of magnitudes that f16 can't hold.
  RangeGuard& guard() { return guard_; }

  // Throws Error(failed) that begins with `name` for a picture that can't be shown to the model.
  PicturePart prepare(Picture picture, const std::string& name) const;
  // Returns the picture's number. Submits when a batch is full and may deliver results of earlier ones.
  uint64_t add(PicturePart part);
  uint64_t add(Picture picture, const std::string& name) { return add(prepare(std::move(picture), name)); }
  // Submits what is left and delivers all that is not yet.
  void finish();

 private:
  // Pictures that are to be a batch.
  struct Pending {
    std::vector<PicturePart> parts;
    std::vector<uint64_t> numbers;
    ResampleNeeds needs;
  };
  struct Recording {
    uint64_t batch = 0;
    PictureCapacity capacity;
    Grid grid;
    std::unique_ptr<Executable> executable;
    uint64_t last_use = 0;
    size_t promoted = 0;  // layers that the guard knew of when it was made
  };
  struct Flight {
    Executable* executable = nullptr;
    std::vector<uint64_t> numbers;
    PictureCapacity capacity;
    Grid grid;
    size_t promoted = 0;
  };

  Grid own_grid() const;
  Grid grid_of(const PicturePart& part) const;
  ViTGraphOptions graph_options(uint64_t batch, const PictureCapacity& capacity, Grid grid) const;
  Plan plan(uint64_t batch, const PictureCapacity& capacity, Grid grid);
  bool check_range(const PictureCapacity& capacity, Grid grid, uint64_t batch, const RangeGuard::Fill& fill);
  std::unique_ptr<Executable> again(const Flight& flight, uint32_t set);
  Recording& recording(uint64_t batch, const ResampleNeeds& needs, Grid grid);
  void drop_oldest_recording();
  void submit(Grid grid);
  void submit_oldest();
  void land(uint32_t set);
  void deliver(uint64_t number, std::span<const float> result);

  const Model& model_;
  Preprocess preprocess_;
  PictureRunnerOptions options_;
  Take take_;
  std::shared_ptr<WeightStore> weights_;
  PictureCapacity largest_, probed_;
  Grid probed_grid_;
  RangeGuard guard_;
  std::vector<float> values_;
  std::vector<Recording> recordings_;
  uint64_t uses_ = 0;

  std::map<Grid, Pending> pending_;
  uint64_t waiting_ = 0;  // pictures in all of those
  uint64_t added_ = 0;
  // Of pictures that came out before an earlier one.
  std::map<uint64_t, std::vector<float>> early_;
  uint64_t delivered_ = 0;
  std::array<Flight, Executable::io_sets> flights_;
  uint32_t next_set_ = 0;
};

}  // namespace vitrine
