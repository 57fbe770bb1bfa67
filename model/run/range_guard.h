// Keeps f16 from being silently wrong: finds the layers whose numbers it can't hold, and has them run in
// f32.
//
// The fast recording carries no counters. It needs none, because no overflow passes unseen:
//
// - Weights that f16 turns into infinity are found before anything runs, and so are blocks whose norms,
//   queries or keys could pass its range: a LayerNorm's result is bounded by its weights alone
//   (weight_range.h). Those are the places where an infinity could vanish: a score of -inf is a weight of
//   0, and the tanh of infinity is 1. (The representation layer's tanh never sees f16.)
// - Everywhere else an infinity meets only products, sums, activations that turn it into infinity or NaN,
//   and norms, which turn it into NaN. As v it is multiplied by a softmax weight: infinity, or NaN where
//   that is 0. In the hidden layer or the head's input every output of the next product becomes infinite or
//   NaN. The f32 residual stream then carries it through all that follows, so that the result isn't finite,
//   unless the result doesn't depend on that token at all.
//
// So where finite images give a result that isn't finite, the same batch runs once more with f32 storage and
// the largest magnitude taken of all that f16 would store. The layers that pass its range run in f32 from
// then on. Where f32 itself isn't finite, nothing can be done and the result stays as it is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/files/weights.h"
#include "model/run/weight_range.h"
#include "model/vit/vit_graph.h"
#include "runtime/graph/executable.h"
#include "runtime/graph/pipeline_store.h"

namespace vitrine {

struct LayerRange {
  std::string layer;     // as LayerTypes has it: "blocks.7.mlp"
  std::string value;     // the tensor with the largest magnitude
  float largest = 0;     // NaN or infinity where f32 holds one
  std::string constant;  // the constant with the largest magnitude
  float largest_constant = 0;

  bool fits_f16() const { return largest <= f16_safe && largest_constant <= f16_largest; }
};

bool all_finite(std::span<const float> values);

class RangeGuard {
 public:
  // How a batch's graph is made, but for its dtype and layers. Both references must outlive the guard.
  using GraphOf = std::function<ViTGraphOptions(uint64_t batch)>;
  RangeGuard(PipelineStore& pipelines, const Model& model, GraphOf graph_of, PlanOptions plan = {},
             Warn warn = {});
  ~RangeGuard();

  // A plan of the model's graph with these options: in f16 with the layers in f32 that it can't hold as far
  // as is known, and with the kernels that are the fastest on this device, where the guard's plan options
  // choose none.
  Plan plan(ViTGraphOptions options);
  const PlanOptions& plan_options() const { return plan_; }

  // What has to run in f32 as far as is known. Looks at the weights when it is first asked.
  const LayerTypes& layers();
  size_t promoted() const { return layers_.size(); }  // how many layers that are by now

  // Fills the inputs of an executable that has those of the batch's graph.
  using Fill = std::function<void(Executable&)>;
  // Runs a batch with magnitudes. True when layers were found that must run in f32 and did not yet; `warn`
  // is given one sentence that names them. `preparing` as Executable has it.
  bool check(uint64_t batch, const Fill& fill, const GoOn& preparing = {});

  // Whether a batch's results that came out of f16 aren't finite because of layers that now run in f32: then
  // the batch is to be run once more, with a new plan. Keeps no memory.
  bool overflowed(std::span<const float> results, uint64_t batch, const Fill& fill,
                  const GoOn& preparing = {});

  // The largest of all that check() has seen and of the weights, in the model's order.
  std::vector<LayerRange> ranges();
  // True when the last check() met something that isn't finite in f32 either.
  bool saw_nonfinite() const { return saw_nonfinite_; }
  // Gives back the memory of the recordings with magnitudes.
  void release();

 private:
  struct Probe;
  // What an f16 graph stores in 16 bits, and which layer's type decides that.
  struct Stored {
    std::string node;
    uint32_t output = 0;
    std::string layer;
  };
  void look_at_graph();
  void look_at_weights();
  std::string layer_of(const WeightRange& range) const;
  bool promote(const std::vector<std::string>& layers, float largest, const std::string& where);

  PipelineStore& pipelines_;
  const Model& model_;
  GraphOf graph_of_;
  PlanOptions plan_;
  Warn warn_;
  LayerTypes layers_;
  bool graph_seen_ = false, weights_seen_ = false, saw_nonfinite_ = false;
  std::vector<WeightRange> weights_;
  std::vector<LayerRange> ranges_;  // one a layer
  std::vector<Stored> stored_;
  std::map<std::string, std::string> layer_of_constant_;
  std::unique_ptr<Probe> probe_;
};

}  // namespace vitrine
